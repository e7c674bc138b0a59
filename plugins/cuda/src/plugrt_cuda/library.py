"""`find_library`: the PJRT library for CUDA, from one of four wheels or a path of the user's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plugrt.errors import PluginBroken
from plugrt.plugins.library import named_library
from plugrt.plugins.packages import distributions
from plugrt_cuda import hardware

CURE = 'pip install "plugrt[cuda12]" or "plugrt[cuda13]"'
DRIVER_OF_CUDA_13 = 580
"""The oldest branch of the driver that runs CUDA 13."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A distribution that brings a PJRT library, and the CUDA that it needs."""

    distribution: str
    cuda: int


WHEELS = (
    Wheel("jax-cuda13-pjrt", 13),
    Wheel("jax-cuda12-pjrt", 12),
    Wheel("xla-cuda13-pjrt", 13),
    Wheel("xla-cuda12-pjrt", 12),
)
"""In order of preference: JAX's wheels are released with each jaxlib, XLA's rarely."""


@dataclass(frozen=True, slots=True)
class Found:
    """A PJRT library for CUDA; of a path that the user gave, less is known."""

    path: str
    who: str
    cuda: int | None


def installed(root: str | Path = "/") -> list[Found]:
    """Returns the libraries of the wheels that are installed, the preferred one first.

    Where the driver is too old for CUDA 13, libraries that need CUDA 13 come last.
    """
    found = [library for wheel in WHEELS if (library := _find_library_in(wheel)) is not None]
    branch = hardware.driver_branch(root)
    if branch is not None and branch < DRIVER_OF_CUDA_13:
        found.sort(key=lambda library: library.cuda or 0)
    return found


def find_library(root: str | Path = "/") -> Found:
    """Returns the library of PLUGRT_CUDA_LIBRARY_PATH, else the preferred one that is installed.

    Raises `PluginBroken` if the path is no file, and without any library.
    """
    named = named_library("cuda_library_path")
    if named:
        return Found(named, "PLUGRT_CUDA_LIBRARY_PATH", None)
    found = installed(root)
    if not found:
        names = ", ".join(wheel.distribution for wheel in WHEELS)
        raise PluginBroken(f"no PJRT library for CUDA is installed (none of {names}); {CURE}")
    return found[0]


def _find_library_in(wheel: Wheel) -> Found | None:
    distribution = distributions.find(wheel.distribution)
    if distribution is None:
        return None
    for file in distribution.files():
        if file.suffix == ".so" and "cuda" in file.name and file.is_file():
            return Found(str(file), f"{wheel.distribution} {distribution.version}", wheel.cuda)
    return None
