"""What plugrt knows of vendors: aliases, how to install a plugin, and how hardware shows itself.

The only file of the runtime that holds vendors' names.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

ALIASES: Mapping[str, tuple[str, ...]] = {"gpu": ("cuda", "rocm", "oneapi")}
"""Names that mean any of several plugins, in order of preference. JAX has the same."""

INSTALL: Mapping[str, str] = {
    "cpu": 'pip install "plugrt[cpu]"',
    "cuda": 'pip install "plugrt[cuda12]" (or "plugrt[cuda13]")',
    "gpu": 'pip install "plugrt[cuda12]" (or "plugrt[cuda13]")',
    "tpu": 'pip install "plugrt[tpu]"',
    "rocm": "pip install jax-rocm7-pjrt",
    "xla_cpu": "pip install xla-cpu-pjrt",
}
"""What to type to get a plugin of that name."""


SHARED_LIBRARIES: Mapping[str, str] = {
    "libcuda.so.1": "the NVIDIA driver",
    "libcudart.so.12": "nvidia-cuda-runtime-cu12",
    "libcublas.so.12": "nvidia-cublas-cu12",
    "libcublasLt.so.12": "nvidia-cublas-cu12",
    "libcudnn.so.9": "nvidia-cudnn-cu12 (or -cu13)",
    "libcufft.so.11": "nvidia-cufft-cu12",
    "libcusolver.so.11": "nvidia-cusolver-cu12",
    "libcusparse.so.12": "nvidia-cusparse-cu12 (or nvidia-cusparse)",
    "libcupti.so.12": "nvidia-cuda-cupti-cu12",
    "libnccl.so.2": "nvidia-nccl-cu12 (or -cu13)",
    "libnvshmem_host.so.3": "nvidia-nvshmem-cu12 (or -cu13)",
    "libnvJitLink.so.12": "nvidia-nvjitlink-cu12",
    "libcudart.so.13": "nvidia-cuda-runtime",
    "libcublas.so.13": "nvidia-cublas",
    "libcublasLt.so.13": "nvidia-cublas",
    "libcufft.so.12": "nvidia-cufft",
    "libcusolver.so.12": "nvidia-cusolver",
    "libcupti.so.13": "nvidia-cuda-cupti",
    "libamdhip64.so.7": "ROCm 7",
    "libamdhip64.so.6": "ROCm 6",
    "libze_loader.so.1": "the oneAPI Level Zero loader",
}
"""Shared library that PJRT libraries need to the package that brings it."""


@dataclass(frozen=True)
class Hardware:
    """A kind of device: how it shows itself, and which plugins would drive it.

    ``files`` are device files made by its driver. ``vendor`` is the PCI vendor id; a device of
    that vendor counts if its class code begins with one of ``classes`` or its device id is one
    of ``devices``.
    """

    label: str
    plugins: tuple[str, ...]
    files: tuple[str, ...] = ()
    vendor: str = ""
    classes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()

    def is_seen(self, root: Path, pci: Collection[tuple[str, str, str]]) -> bool:
        """Whether one of these is among the files under ``root`` or the PCI devices."""
        return any((root / file).exists() for file in self.files) or any(
            vendor == self.vendor and (code.startswith(self.classes) or device in self.devices)
            for vendor, device, code in pci
        )


_GPU_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
"""PCI class codes: VGA, 3D and other display controllers, processing accelerators."""

HARDWARE = (
    # /dev/dxg is how WSL2 shows a GPU.
    Hardware("an NVIDIA GPU", ("cuda", "xla_cuda12", "xla_cuda13"), ("dev/nvidiactl", "dev/dxg"),
             "0x10de", _GPU_CLASSES),
    Hardware("an AMD GPU", ("rocm", "xla_rocm7"), ("dev/kfd",), "0x1002", ("0x1200",)),
    # By device id (v2 to 7x): the vendor's network cards and disks are in every such machine.
    Hardware("a Google TPU", ("tpu",), (), "0x1ae0", (),
             ("0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076")),
    # Integrated graphics report class 0x0300 and run no PJRT plugin; data-centre GPUs 0x0380.
    Hardware("an Intel data-centre GPU", ("oneapi", "xla_oneapi"), (), "0x8086", ("0x0380",)),
    Hardware("an AWS Neuron device", ("neuron",), ("dev/neuron0",)),
    Hardware("a Tenstorrent device", ("tt",), ("dev/tenstorrent",), "0x1e52", ("0x1200",)),
)  # fmt: skip


def hardware_seen(root: str | Path = "/") -> list[Hardware]:
    """Returns the accelerators that this machine shows; reads /dev and /sys, opens no device."""
    pci = _pci_devices(Path(root))
    return [hardware for hardware in HARDWARE if hardware.is_seen(Path(root), pci)]


def _pci_devices(root: Path) -> set[tuple[str, str, str]]:
    """Returns (vendor id, device id, class code) of PCI devices; empty where there is no /sys."""
    folder = root / "sys/bus/pci/devices"
    try:
        names = os.listdir(folder)
    except OSError:
        return set()
    return {
        (_word(folder / name / "vendor"), _word(folder / name / "device"),
         _word(folder / name / "class"))
        for name in names
    }  # fmt: skip


def _word(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""  # the device went away while we looked


def missing_plugins(names: Collection[str], root: str | Path = "/") -> list[str]:
    """Returns a sentence for each accelerator here that no plugin in ``names`` drives."""
    return [
        f"this machine has {hardware.label}, but no plugin for it is installed; "
        + install(hardware.plugins[0])
        for hardware in hardware_seen(root)
        if not set(hardware.plugins) & set(names)
    ]


def install(name: str) -> str:
    """Returns what to do to get a plugin of that name."""
    return INSTALL.get(name, f"install a plugin that provides {name!r}")
