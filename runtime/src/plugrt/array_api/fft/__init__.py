"""The Fourier transforms extension of the array API standard, on any backend with StableHLO's fft.

Half precision is transformed in float32. Each function is one launch, and works while a function is
traced.
"""

from plugrt.array_api.fft.transforms import (
    fft,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    ifft,
    ifftn,
    ifftshift,
    ihfft,
    irfft,
    irfftn,
    rfft,
    rfftfreq,
    rfftn,
)

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def __dir__() -> list[str]:
    # Without the names of submodules.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
