"""Checks that the versions of NVIDIA's libraries fit the PJRT library.

The rules are the same as in JAX's plugin for CUDA. All faults are reported in one error, with the
packages to install.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plugrt.errors import PluginIncompatible
from plugrt.plugins.log import logger
from plugrt_cuda.nvidia_libraries import Loaded


@dataclass(frozen=True, slots=True)
class Rule:
    """How to read a library's version, and the oldest accepted one.

    ``getter`` writes it to the address of an int, ``property_getter`` does so for each of major,
    minor and patch, which ``weights`` combine; ``plain`` returns it.
    """

    name: str
    minimum: int = 0
    getter: str = ""
    property_getter: str = ""
    weights: tuple[int, int, int] = (0, 0, 0)
    plain: str = ""


RULES = (
    Rule("CUDA runtime", 12010, getter="cudaRuntimeGetVersion"),
    Rule("cuDNN", plain="cudnnGetVersion"),
    Rule("cuFFT", getter="cufftGetVersion"),
    Rule("cuPTI", 18, getter="cuptiGetVersion"),
    Rule("cuBLAS", 120100, property_getter="cublasGetProperty", weights=(10000, 100, 1)),
    Rule("cuSPARSE", 12100, property_getter="cusparseGetProperty", weights=(1000, 100, 1)),
)
ADVICE = (Rule("cuSOLVER", 11400, getter="cusolverGetVersion"),)
"""Only warned of: JAX disables this check, because the library fails to answer on some systems."""


@dataclass(slots=True)
class Report:
    """Version by component, faults that prevent a start, and warnings."""

    versions: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def check(loaded: Mapping[str, Loaded], cuda: int, capabilities: Sequence[int]) -> Report:
    """Returns the faults of the libraries for GPUs of these compute capabilities (90 is 9.0)."""
    report = Report()
    for rule in RULES:
        report.faults += _check_one(rule, loaded[rule.name], cuda, report)
    for rule in ADVICE:
        report.warnings += _check_one(rule, loaded[rule.name], cuda, report)
    report.faults += _known_faults(report.versions, len(capabilities))
    report.warnings += _known_dangers(report.versions, capabilities)
    return report


def require(loaded: Mapping[str, Loaded], cuda: int, who: str, capabilities: Sequence[int]) -> None:
    """Raises `PluginIncompatible` with all faults that `check` finds; logs its warnings."""
    report = check(loaded, cuda, capabilities)
    for warning in report.warnings:
        logger.warning("cuda: %s", warning)
    if report.faults:
        raise PluginIncompatible(
            f"NVIDIA's libraries do not fit the PJRT library ({who}): {'; '.join(report.faults)}. "
            f'pip install --upgrade "plugrt[cuda{cuda}]" brings all of them; '
            "JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1 starts without this check"
        )


def _check_one(rule: Rule, loaded: Loaded, cuda: int, report: Report) -> list[str]:
    wheel = loaded.component.wheel(cuda)
    if loaded.library is None:
        return [f"{rule.name} cannot be loaded ({loaded.fault}; the package {wheel} has it)"]
    try:
        version = read_version(rule, loaded.library)
    except (AttributeError, OSError) as error:
        return [f"{rule.name} at {loaded.path} does not state its version ({error})"]
    report.versions[rule.name] = version
    if version < rule.minimum:
        return [
            f"{rule.name} at {loaded.path} is version {version}; at least {rule.minimum} is "
            f"needed: upgrade the package {wheel}"
        ]
    return []


def read_version(rule: Rule, library: ctypes.CDLL) -> int:
    """Returns the version that a library reports, in the library's own numbering.

    Raises `OSError` with the library's status when it refuses, `AttributeError` without such a
    function.
    """
    if rule.plain:
        function = getattr(library, rule.plain)
        function.restype = ctypes.c_size_t
        return int(function())
    value = ctypes.c_int()
    if rule.getter:
        _ask(library, rule.getter, ctypes.byref(value))
        return value.value
    total = 0
    for which, weight in enumerate(rule.weights):  # MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL
        _ask(library, rule.property_getter, ctypes.c_int(which), ctypes.byref(value))
        total += weight * value.value
    return total


def _ask(library: ctypes.CDLL, name: str, *arguments: object) -> None:
    status = getattr(library, name)(*arguments)
    if status:
        raise OSError(f"{name} returned status {status}")


def _known_faults(versions: Mapping[str, int], gpus: int) -> list[str]:
    cudnn, cublas = versions.get("cuDNN"), versions.get("cuBLAS", 0)
    if cudnn == 91000:  # Workaround for cudnn-enumeration
        return ["cuDNN 9.10.0 reorders values of an enumeration, so that programs built with "
                "others break; use cuDNN 9.10.1 or later"]  # fmt: skip
    # Workaround for cudnn-several-gpus
    if cudnn is not None and cudnn < 91001 and cublas >= 120900 and gpus > 1:
        return [f"cuDNN {cudnn} computes wrong matrix products on several GPUs when cuBLAS is 12.9 "
                f"or later (here {cublas}); use cuDNN 9.10.1 or later"]  # fmt: skip
    return []


def _known_dangers(versions: Mapping[str, int], capabilities: Sequence[int]) -> list[str]:
    cublas = versions.get("cuBLAS", 0)
    # Workaround for cublas-tensor-memory
    if 120800 <= cublas < 130200 and any(100 <= c < 120 for c in capabilities):
        return [f"cuBLAS {cublas} frees Tensor Memory more than once on this GPU, which can "
                "corrupt results of kernels beside it; cuBLAS 13.2 or later does not"]  # fmt: skip
    return []
