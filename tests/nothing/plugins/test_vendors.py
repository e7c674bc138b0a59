"""`plugrt.plugins.vendors`: hardware without a plugin is seen, from files only."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from plugrt.plugins import Availability, Backends, backends, vendors
from plugrt.settings.declarations import Config
from support.distributions import install_plugin
from support.fake_client import FakePlugin


def pci(root: Path, vendor: str, device: str = "0x0001", code: str = "0x030000") -> None:
    folder = root / "sys/bus/pci/devices" / f"0000:{vendor[2:]}:{device[2:]}"
    folder.mkdir(parents=True)
    for name, text in (("vendor", vendor), ("device", device), ("class", code)):
        (folder / name).write_text(text + "\n")


def test_a_bare_machine_shows_nothing(tmp_path: Path) -> None:
    assert vendors.hardware_seen(tmp_path) == []
    assert vendors.missing_plugins([], root=tmp_path) == []


@pytest.mark.parametrize("file", ["dev/nvidiactl", "dev/nvidia0", "dev/kfd", "dev/neuron0"])
def test_a_device_file_is_hardware(tmp_path: Path, file: str) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / file).touch()
    (seen,) = vendors.hardware_seen(tmp_path)
    assert file in seen.files


@pytest.mark.parametrize(
    ("vendor", "device", "code", "label"),
    [
        ("0x10de", "0x2330", "0x030200", "an NVIDIA GPU"),
        ("0x1ae0", "0x0063", "0xff0000", "a Google TPU"),
        ("0x1ae0", "0x007c", "0xff0000", "a Google TPU"),  # 8t
        ("0x1ae0", "0x0083", "0xff0000", "a Google TPU"),  # 8i
        ("0x1ae0", "0x0042", "0x020000", ""),  # the vendor's network card
        ("0x8086", "0x46a6", "0x030000", ""),  # integrated graphics
        ("0x8086", "0x0bd5", "0x038000", "an Intel data-centre GPU"),
        ("0x10de", "0x10f7", "0x040300", ""),  # the sound device of a graphics card
    ],
)
def test_pci_devices(tmp_path: Path, vendor: str, device: str, code: str, label: str) -> None:
    pci(tmp_path, vendor, device, code)
    assert [h.label for h in vendors.hardware_seen(tmp_path)] == ([label] if label else [])


def test_the_missing_plugin_is_named_with_what_to_type(tmp_path: Path) -> None:
    pci(tmp_path, "0x10de")
    (sentence,) = vendors.missing_plugins(["cpu"], root=tmp_path)
    assert "NVIDIA GPU" in sentence
    assert 'pip install "plugrt[cuda12]"' in sentence
    assert vendors.missing_plugins(["cpu", "cuda"], root=tmp_path) == []


def test_a_plugin_that_must_be_asked_for_is_named(tmp_path: Path) -> None:
    pci(tmp_path, "0x10de")
    (sentence,) = vendors.missing_plugins(["cpu"], ["xla_cuda12", "xla_cpu"], tmp_path)
    assert "NVIDIA GPU" in sentence
    assert "JAX_PLATFORMS=xla_cuda12" in sentence
    assert 'pip install "plugrt[cuda12]"' in sentence


def test_a_half_readable_device_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "sys/bus/pci/devices/gone").mkdir(parents=True)
    assert vendors.hardware_seen(tmp_path) == []


@pytest.mark.parametrize(("priority", "expected"), [(0, 1), (400, 0)])
def test_said_once_where_only_cpu_could_be_chosen(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    priority: int,
    expected: int,
) -> None:
    monkeypatch.setattr(vendors, "missing_plugins", lambda *names: [f"no plugin; have {names}"])
    made = Backends(Config({}), path=[])
    made.register(FakePlugin("cpu", priority=priority))
    with caplog.at_level(logging.WARNING):
        backends.devices(of=made)
        backends.clear_backends(made)
        backends.devices(of=made)
    assert len(caplog.messages) == expected


def test_every_alias_and_hardware_has_a_way_to_install() -> None:
    for hardware in vendors.HARDWARE:
        assert vendors.install(hardware.plugins[0])
    assert "mychip" in vendors.install("mychip")


def test_a_plugin_made_for_jax_that_drives_the_hardware_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The row was taken for a plugin that drives it, and cpu was chosen without a sentence."""
    install_plugin(tmp_path, "xla_cuda12", group="jax_plugins")
    gpu = next(h for h in vendors.HARDWARE if "cuda" in h.plugins)
    monkeypatch.setattr(vendors, "hardware_seen", lambda root="/": [gpu])
    made = Backends(Config({}), path=[str(tmp_path)])
    made.register(FakePlugin("cpu", priority=0))
    assert backends.default_backend(made) == "cpu"
    (sentence,) = caplog.messages
    for fact in ("an NVIDIA GPU", "JAX_PLATFORMS=xla_cuda12", "plugrt[cuda12]"):
        assert fact in sentence
    caplog.clear()
    beside_ours = Backends(Config({}), path=[str(tmp_path)])
    for plugin in (
        FakePlugin("cpu", priority=0),
        FakePlugin("cuda", available=Availability.no("")),
    ):
        beside_ours.register(plugin)
    assert backends.default_backend(beside_ours) == "cpu"
    assert caplog.messages == []
