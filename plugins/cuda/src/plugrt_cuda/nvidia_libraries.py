"""Loads NVIDIA's libraries from their wheels before a PJRT library opens them by name."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plugrt.plugins.log import logger


@dataclass(frozen=True, slots=True)
class Component:
    """A library of NVIDIA's: file names by CUDA version, and where wheels have it.

    ``folder`` is its folder under ``nvidia/`` in wheels for CUDA 12; those for CUDA 13 share
    ``nvidia/cu13``, except ``own`` ones. ``package`` is the wheel's name for CUDA 12.
    """

    name: str
    files: dict[int, tuple[str, ...]]
    folder: str
    package: str
    own: bool = False

    def wheel(self, cuda: int) -> str:
        """Returns the name of the wheel that has it for a CUDA version."""
        if cuda == 12:
            return f"{self.package}-cu12"
        return f"{self.package}-cu13" if self.own else self.package


COMPONENTS = (
    Component("CUDA runtime", {12: ("libcudart.so.12",), 13: ("libcudart.so.13",)},
              "cuda_runtime", "nvidia-cuda-runtime"),
    # cuDNN opens it by name when first used, and wheels' search paths do not lead to its folder:
    # https://github.com/pytorch/pytorch/pull/145582
    Component("NVRTC", {12: ("libnvrtc.so.12",), 13: ("libnvrtc.so.13",)},
              "cuda_nvrtc", "nvidia-cuda-nvrtc"),
    Component("nvJitLink", {12: ("libnvJitLink.so.12",), 13: ("libnvJitLink.so.13",)},
              "nvjitlink", "nvidia-nvjitlink"),
    Component("cuBLAS", {12: ("libcublasLt.so.12", "libcublas.so.12"),
                         13: ("libcublasLt.so.13", "libcublas.so.13")},
              "cublas", "nvidia-cublas"),
    Component("NCCL", {12: ("libnccl.so.2",), 13: ("libnccl.so.2",)}, "nccl", "nvidia-nccl", True),
    Component("cuPTI", {12: ("libcupti.so.12",), 13: ("libcupti.so.13",)},
              "cuda_cupti", "nvidia-cuda-cupti"),
    Component("cuSPARSE", {12: ("libcusparse.so.12",), 13: ("libcusparse.so.12",)},
              "cusparse", "nvidia-cusparse"),
    Component("cuSOLVER", {12: ("libcusolver.so.11",), 13: ("libcusolver.so.12",)},
              "cusolver", "nvidia-cusolver"),
    Component("cuFFT", {12: ("libcufft.so.11",), 13: ("libcufft.so.12",)},
              "cufft", "nvidia-cufft"),
    Component("NVSHMEM", {12: ("libnvshmem_host.so.3",), 13: ("libnvshmem_host.so.3",)},
              "nvshmem", "nvidia-nvshmem", True),
    Component("cuDNN", {12: ("libcudnn.so.9",), 13: ("libcudnn.so.9",)},
              "cudnn", "nvidia-cudnn", True),
)  # fmt: skip
"""In the order of their dependencies: each finds its dependencies loaded."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of loading a component: its library and path, or why it could not be loaded."""

    component: Component
    path: str = ""
    library: ctypes.CDLL | None = None
    fault: str = ""

    def __str__(self) -> str:
        return f"{self.component.name}: {self.path or self.fault}"


def wheel_folders() -> list[Path]:
    """Returns the folders that the wheels of NVIDIA share (the namespace package ``nvidia``)."""
    spec = importlib.util.find_spec("nvidia")
    return [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []


def preload(cuda: int, roots: Sequence[Path] | None = None) -> dict[str, Loaded]:
    """Loads NVIDIA's libraries for a CUDA version, and returns the result of each by its name.

    It tries the libraries in wheels first, then those that the system's loader finds, as JAX does.
    When another library opens one of them by name, it gets the one loaded here; so their symbols
    need not be global.
    """
    folders = wheel_folders() if roots is None else roots
    found = {c.name: _load(c, cuda, folders) for c in COMPONENTS}
    for loaded in found.values():
        logger.debug("CUDA %d: %s", cuda, loaded)
    return found


def _load(component: Component, cuda: int, roots: Sequence[Path]) -> Loaded:
    shelf = component.folder if cuda == 12 or component.own else f"cu{cuda}"
    library: ctypes.CDLL | None = None
    path = ""
    for file in component.files[cuda]:
        faults = []
        for candidate in [*(str(root / shelf / "lib" / file) for root in roots), file]:
            try:
                library, path = ctypes.CDLL(candidate), candidate
                break
            except OSError as error:
                if candidate == file or Path(candidate).exists():
                    faults.append(str(error))
        else:
            return Loaded(component, fault="; ".join(faults))
    return Loaded(component, path, library)
