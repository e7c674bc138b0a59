"""`plugrt.plugins.vendors`: finds hardware without a plugin, from files only."""

from __future__ import annotations

import logging
import os
import shutil
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import plugrt
from plugrt.plugins import Availability, LibraryPlugin, vendors
from plugrt.plugins.library import set_start_variables
from support.clib import compile_c, linked, needs_cc
from support.distributions import install, install_plugin
from support.fake_client import FakePlugin
from support.registries import registry


def pci(root: Path, vendor: str, device: str = "0x0001", code: str = "0x030000") -> None:
    folder = root / "sys/bus/pci/devices" / f"0000:{vendor[2:]}:{device[2:]}"
    folder.mkdir(parents=True)
    for name, text in (("vendor", vendor), ("device", device), ("class", code)):
        (folder / name).write_text(text + "\n")


def test_a_bare_machine_shows_nothing(tmp_path: Path) -> None:
    assert vendors.hardware_seen(tmp_path) == []


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
        ("0x8086", "0x46a6", "0x030000", "an Intel graphics card"),  # it may be integrated
        ("0x8086", "0x0bd5", "0x038000", "an Intel data-centre GPU"),
        ("0x10de", "0x10f7", "0x040300", ""),  # the sound device of a graphics card
    ],
)
def test_pci_devices(tmp_path: Path, vendor: str, device: str, code: str, label: str) -> None:
    pci(tmp_path, vendor, device, code)
    assert [h.label for h in vendors.hardware_seen(tmp_path)] == ([label] if label else [])


def sentences(
    root: Path, show_hardware: Any, *plugins: FakePlugin, path: Path | None = None
) -> list[str]:
    """Returns the sentences of a registry's table about the accelerators under ``root``."""
    show_hardware(vendors.hardware_seen(root))
    return registry(*plugins, path=path).table.missing_plugins()


def test_the_missing_plugin_is_named_with_what_to_type(tmp_path: Path, show_hardware: Any) -> None:
    pci(tmp_path, "0x10de")
    (sentence,) = sentences(tmp_path, show_hardware, FakePlugin("cpu"))
    assert "NVIDIA GPU" in sentence
    assert 'pip install "plugrt[cuda12]"' in sentence
    assert sentences(tmp_path, show_hardware, FakePlugin("cpu"), FakePlugin("cuda")) == []


@pytest.mark.parametrize("data_centre", [False, True])
def test_graphics_that_most_machines_have_are_no_reason_to_install_a_plugin(
    tmp_path: Path, show_hardware: Any, data_centre: bool
) -> None:
    """Earlier, the message for a machine with a graphics card denied any device for Level Zero."""
    pci(tmp_path, *INTEL_CARD[:1], code=INTEL_CARD[1])
    if data_centre:
        pci(tmp_path, "0x8086", "0x0002", "0x038000")
    seen = vendors.hardware_seen(tmp_path)
    assert set(seen) <= set(vendors.find_hardware((), ["libze_loader.so.1"]))
    said = sentences(tmp_path, show_hardware, FakePlugin("cpu"))
    assert ["an Intel data-centre GPU" in sentence for sentence in said] == [True] * data_centre


REGISTERS = """
    import jax._src.xla_bridge as xb

    def initialize():
        xb.register_plugin({!r}, priority=500, library_path="/x.so")
"""
AMD, INTEL, NVIDIA = ("0x1002", "0x120000"), ("0x8086", "0x038000"), ("0x10de",)
INTEL_CARD = ("0x8086", "0x030000")
PACKAGES = [  # (card, distribution, entry point, what it registers, what its library needs)
    (("dev/tenstorrent",), "jax-tt-plugin", "libtt", "tt", ""),
    (AMD, "jax-rocm10-pjrt", "xla_rocm10", "rocm", "libamdhip64.so.7"),
    (AMD, "jax-rocm60-pjrt", "xla_rocm60", "rocm", ""),
    (AMD, "jax-rocm7-pjrt", "xla_rocm7", "", "libamdhip64.so.6"),
    (INTEL, "intel-extension-for-openxla", "intel", "sycl", "libze_loader.so.1"),
    (INTEL, "jax-oneapi-pjrt", "xla_oneapi", "oneapi", ""),
    (INTEL_CARD, "intel-extension-for-openxla", "intel", "sycl", "libsycl.so.8"),
    (INTEL_CARD, "jax-oneapi-pjrt", "xla_oneapi", "oneapi", ""),
    (NVIDIA, "mlir-tensorrt-jax", "mlir_tensorrt", "mlir_tensorrt", "libcudart.so.13"),
    (NVIDIA, "jax-cuda11-pjrt", "xla_cuda11", "cuda", ""),
    (NVIDIA, "jax-cuda12-pjrt", "xla_cuda12", "cuda", ""),
]
"""Names and facts of wheels on PyPI in November 2026."""


@pytest.mark.parametrize(("card", "distribution", "entry", "registers", "needs"), PACKAGES)
def test_an_installed_plugin_made_for_jax_is_known_to_be_for_the_card(
    site: Path, show_hardware: Any, card: tuple[str, ...], distribution: str,
    entry: str, registers: str, needs: str,
) -> None:  # fmt: skip
    """Earlier, doctor denied that a plugin was installed for all but one, and suggested another."""
    install(site, distribution, {"jax_plugins": {entry: f"m_{entry}"}},
            {f"m_{entry}": REGISTERS.format(registers or entry)})  # fmt: skip
    if needs:
        if shutil.which("cc") is None:
            pytest.skip("needs a C compiler")
        library = compile_c(site, "void* GetPjrtApi(void) { return 0; }", *linked(site, needs))
        info = next(site.glob("*.dist-info"))
        (info / "RECORD").write_text(f"{library.name},,\n")
    if card[0].startswith("dev/"):
        (site / "dev").mkdir()
        (site / card[0]).touch()
    else:
        pci(site, card[0], code=card[-1] if len(card) > 1 else "0x030000")
    (sentence,) = sentences(site, show_hardware, FakePlugin("cpu"), path=site)
    assert f"JAX_PLATFORMS={entry}" in sentence
    assert f"{entry}, made for another program, is used when it is requested" in sentence
    assert ('"plugrt[cuda12]"' in sentence) == (card is NVIDIA)
    assert "pip install jax" not in sentence, "it is installed, or is the wrong version"


@needs_cc
@pytest.mark.parametrize("needs", ["libamdhip64.so.99", "libze_loader.so.99", "libcudart.so.99"])
@pytest.mark.parametrize("card", [False, True])
def test_a_library_without_its_vendors_is_unavailable_where_the_device_is_absent(
    site: Path, needs: str, card: bool, show_hardware: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Earlier, it was broken, with a warning, on every machine."""
    path = compile_c(site, "void* GetPjrtApi(void) { return 0; }", *linked(site, needs))
    (site / needs).unlink()
    kind = vendors.find_hardware((), [needs])[0]
    show_hardware([kind] if card else [])
    made = registry(LibraryPlugin("chip", path), FakePlugin("cpu", priority=0))
    assert plugrt.default_backend(made) == "cpu"
    (row,) = [row for row in made.table.rows if row.name == "chip"]
    assert row.state == ("broken" if card else "unavailable")
    assert (kind.label in row.reason) == (not card)
    assert needs in row.reason
    left_out = [message for message in caplog.messages if "left out" in message]
    assert len(left_out) == card


@pytest.mark.parametrize(
    ("library", "source"),
    [
        *((name, "AMD's ROCm") for name in (
            "libamdhip64.so.7", "librocblas.so.5", "libMIOpen.so.1", "libhipfft.so.0",
            "librccl.so.1", "libhsa-runtime64.so.1", "librocm_sysdeps_drm_amdgpu.so.1",
            "libamd_smi.so.26", "libhipblaslt.so.1", "librocprofiler-sdk.so.1")),
        *((name, "Intel's oneAPI") for name in (
            "libmkl_sycl_blas.so.5", "libsycl.so.8", "libumf.so.0", "libur_loader.so.0",
            "libsvml.so", "libimf.so", "libintlc.so.5", "libirc.so", "libirng.so", "libccl.so.1")),
        ("libze_tracing_layer.so.1", "Intel's Level Zero loader"),
        ("libcublas.so.13", "the package nvidia-cublas"),
        ("libcuda.so.1", "the NVIDIA driver"),
        ("libtvm_ffi.so", "the package apache-tvm-ffi"),
    ],
)  # fmt: skip
def test_the_source_of_a_vendors_library_is_named(library: str, source: str) -> None:
    """Earlier, most libraries of ROCm and oneAPI had no source. Each ROCm version has the first."""
    known = vendors.SHARED_LIBRARIES
    assert [known[pattern] for pattern in known if fnmatchcase(library, pattern)] == [source]


def test_a_library_is_known_by_the_name_of_its_file_and_of_a_link(tmp_path: Path) -> None:
    """Earlier, a link with another name lost the library's variables and trial."""
    (tmp_path / "libtpu.so").touch()
    (tmp_path / "mine.so").symlink_to("libtpu.so")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/libtpu.so").symlink_to(tmp_path / "versioned.so")
    (tmp_path / "versioned.so").touch()
    for name in ("libtpu.so", "mine.so", "other/libtpu.so"):
        assert vendors.is_exclusive(str(tmp_path / name)), name
        with set_start_variables(str(tmp_path / name)):
            assert os.environ["TPU_SKIP_MDS_QUERY"] == "1", name
    assert vendors.is_exclusive("libtpu.so")
    assert not vendors.is_exclusive(str(tmp_path / "versioned.so"))


def test_a_half_readable_device_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "sys/bus/pci/devices/gone").mkdir(parents=True)
    assert vendors.hardware_seen(tmp_path) == []


@pytest.mark.parametrize(("priority", "expected"), [(0, 1), (400, 0)])
def test_said_once_where_only_cpu_could_be_chosen(
    show_hardware: Any, caplog: pytest.LogCaptureFixture, priority: int, expected: int
) -> None:
    show_hardware([next(h for h in vendors.HARDWARE if "cuda" in h.plugins)])
    made = registry(FakePlugin("cpu", priority=priority))
    with caplog.at_level(logging.WARNING):
        plugrt.devices(of=made)
        plugrt.clear_backends(made)
        plugrt.devices(of=made)
    assert len(caplog.messages) == expected


def test_every_alias_and_hardware_has_a_way_to_install() -> None:
    for hardware in vendors.HARDWARE:
        assert vendors.install(hardware.plugins[0])
    assert "mychip" in vendors.install("mychip")


def test_a_plugin_made_for_jax_that_drives_the_hardware_is_named(
    tmp_path: Path, show_hardware: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Earlier, the row counted as a driving plugin, and cpu was chosen without a message."""
    install_plugin(tmp_path, "xla_cuda12", group="jax_plugins")
    gpu = next(h for h in vendors.HARDWARE if "cuda" in h.plugins)
    show_hardware([gpu])
    made = registry(path=tmp_path)
    made.register(FakePlugin("cpu", priority=0))
    assert plugrt.default_backend(made) == "cpu"
    (sentence,) = caplog.messages
    for fact in ("an NVIDIA GPU", "JAX_PLATFORMS=xla_cuda12", "plugrt[cuda12]"):
        assert fact in sentence
    caplog.clear()
    beside_ours = registry(path=tmp_path)
    for plugin in (
        FakePlugin("cpu", priority=0),
        FakePlugin("cuda", available=Availability.no("")),
    ):
        beside_ours.register(plugin)
    assert plugrt.default_backend(beside_ours) == "cpu"
    assert caplog.messages == []
