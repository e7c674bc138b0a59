"""The tpu plugin's detection of TPU machines, in made-up trees of kernels' files."""

from __future__ import annotations

import timeit
from pathlib import Path

import pytest

from plugrt_tpu import hardware


def tree(
    root: Path, *devices: tuple[str, str], product: str = "", files: tuple[str, ...] = ()
) -> Path:
    """Makes PCI devices (vendor, device), the firmware's product name and device files."""
    for number, (vendor, device) in enumerate(devices):
        folder = root / f"sys/bus/pci/devices/0000:00:{number:02x}.0"
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(vendor + "\n")
        (folder / "device").write_text(device + "\n")
    if product:
        dmi = root / "sys/class/dmi/id"
        dmi.mkdir(parents=True)
        (dmi / "product_name").write_text(product + "\n")
    for file in files:
        path = root / "dev" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def test_chips_are_counted_by_generation(tmp_path: Path) -> None:
    root = tree(tmp_path, ("0x1ae0", "0x0063"), ("0x1ae0", "0x0063"), ("0x8086", "0x1237"))
    seen = hardware.detect(root)
    assert seen.is_tpu_machine
    assert str(seen) == "2 TPU chips on the PCI bus (v5e)"


@pytest.mark.parametrize(("device", "generation"), [("0x007c", "8t"), ("0x0083", "8i")])
def test_new_generations(tmp_path: Path, device: str, generation: str) -> None:
    seen = hardware.detect(tree(tmp_path, ("0x1ae0", device)))
    assert seen.is_tpu_machine
    assert seen.chips == (generation,)


@pytest.mark.parametrize("files", [("accel0", "accel1"), ("vfio/vfio", "vfio/0")])
def test_accelerator_files_count_on_a_machine_of_googles(
    tmp_path: Path, files: tuple[str, ...]
) -> None:
    assert hardware.detect(
        tree(tmp_path, product="Google Compute Engine", files=files)
    ).is_tpu_machine


@pytest.mark.parametrize(
    ("devices", "product", "files"),
    [
        ((), "", ()),
        ((("0x1ae0", "0x0042"),), "Google Compute Engine", ()),  # the vendor's network card
        ((("0x10de", "0x2330"),), "", ()),
        ((("0x10de", "0x0063"),), "", ()),  # a chip's device id, of another vendor
        ((), "Standard PC", ("accel0",)),  # another vendor's accelerator
        ((), "Standard PC", ("vfio/12",)),  # a device passed through to a virtual machine
        ((), "Google Compute Engine", ("vfio/vfio", "accel", "accelerator0")),
    ],
)
def test_machines_without_a_tpu(
    tmp_path: Path, devices: tuple[tuple[str, str], ...], product: str, files: tuple[str, ...]
) -> None:
    seen = hardware.detect(tree(tmp_path, *devices, product=product, files=files))
    assert not seen.is_tpu_machine
    assert "no TPU chip" in str(seen)


def test_a_device_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    root = tree(tmp_path, ("0x1ae0", "0x0063"))
    (root / "sys/bus/pci/devices/0000:00:00.0/device").unlink()
    assert not hardware.detect(root).is_tpu_machine


def test_looking_at_this_machine_is_cheap() -> None:
    # with this machine's files
    assert min(timeit.repeat(hardware.detect, number=1, repeat=20)) < 0.1
