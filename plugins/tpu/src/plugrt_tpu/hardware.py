"""Whether this machine has TPUs, from files that the kernel and the firmware write."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from plugrt.plugins.vendors import GOOGLE, TPU_CHIPS, pci_devices, read_word


@dataclass(frozen=True, slots=True)
class Hardware:
    """The detected hardware: chips on the PCI bus by generation, device files, product name."""

    chips: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    google_machine: bool = False

    @property
    def is_tpu_machine(self) -> bool:
        """Whether there is a TPU: a chip, or accelerator files on a machine of Google's.

        ``/dev/vfio`` and ``/dev/accel0`` alone prove nothing: the first passes any device to a
        process, and other vendors' accelerators have the second.
        """
        return bool(self.chips) or (self.google_machine and bool(self.files))

    def __str__(self) -> str:
        if self.chips:
            kinds = ", ".join(sorted(set(self.chips)))
            return f"{len(self.chips)} TPU chips on the PCI bus ({kinds})"
        if self.is_tpu_machine:
            return f"accelerator files on a Google machine ({', '.join(self.files)})"
        found = f"; {', '.join(self.files)} are another vendor's" if self.files else ""
        return f"no TPU chip on the PCI bus and no accelerator files of a Google machine{found}"


def detect(root: str | Path = "/") -> Hardware:
    """Returns the hardware in ``/sys`` and ``/dev``; opens no device and uses no network."""
    top = Path(root)
    return Hardware(
        chips=tuple(
            TPU_CHIPS[device]
            for vendor, device, _ in pci_devices(top)
            if vendor == GOOGLE and device in TPU_CHIPS
        ),
        files=tuple(_files(top)),
        google_machine=read_word(top / "sys/class/dmi/id/product_name").startswith("Google"),
    )


def _files(top: Path) -> list[str]:
    accel = [f"/dev/{name}" for name in _names(top / "dev") if _is_accel(name)]
    groups = [f"/dev/vfio/{name}" for name in _names(top / "dev/vfio") if name.isdecimal()]
    return [*accel, *groups]


def _is_accel(name: str) -> bool:
    return name.startswith("accel") and name[5:].isdecimal()


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # There is no such bus or folder here.
        return []
