"""The chosen PJRT library for CUDA, among wheels made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import plugrt
from plugrt.errors import PluginBroken
from plugrt_cuda import library
from support.distributions import install
from support.vendor_plugins import choose_beside_fake


def wheel(folder: Path, distribution: str, version: str = "1.0") -> Path:
    """Installs a wheel with a library of that name; returns the library."""
    info = install(folder, distribution, {}, version=version)
    name = f"plugins_of_{distribution.replace('-', '_')}/xla_cuda_plugin.so"
    file = folder / name
    file.parent.mkdir()
    file.touch()
    (info / "RECORD").write_text(f"{name},,\n{info.name}/METADATA,,\n")
    return file


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_the_newest_cuda_comes_first_and_jax_before_xla(site: Path) -> None:
    for name in ("xla-cuda12-pjrt", "xla-cuda13-pjrt", "jax-cuda12-pjrt", "jax-cuda13-pjrt"):
        wheel(site, name, "0.5")
    assert [found.who for found in library.installed()] == [
        "jax-cuda13-pjrt 0.5", "jax-cuda12-pjrt 0.5", "xla-cuda13-pjrt 0.5", "xla-cuda12-pjrt 0.5",
    ]  # fmt: skip
    assert library.find_library().cuda == 13


def test_an_old_driver_gets_cuda_12(site: Path) -> None:
    wheel(site, "jax-cuda13-pjrt")
    expected = wheel(site, "jax-cuda12-pjrt")
    version = site / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.9  Release")
    assert library.find_library(site).path == str(expected)
    version.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.9  Release")
    assert library.find_library(site).cuda == 13


def test_a_wheel_whose_library_is_gone_is_passed_over(site: Path) -> None:
    wheel(site, "jax-cuda13-pjrt").unlink()
    wheel(site, "jax-cuda12-pjrt")
    assert library.find_library().cuda == 12


def test_without_a_library_all_that_would_do_are_named(site: Path) -> None:
    with pytest.raises(PluginBroken, match=r"jax-cuda13-pjrt.*plugrt\[cuda12\]"):
        library.find_library()


def test_a_named_library_comes_before_all(site: Path) -> None:
    wheel(site, "jax-cuda13-pjrt")
    file = site / "mine.so"
    with plugrt.config.override(cuda_library_path=str(file)):
        with pytest.raises(PluginBroken, match="PLUGRT_CUDA_LIBRARY_PATH names"):
            library.find_library()
        file.touch()
        assert library.find_library().path == str(file)


def test_a_machine_with_a_driver_but_no_library_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidiactl").touch()
    done = choose_beside_fake(tmp_path, "cuda", tmp_path, CUDA_VISIBLE_DEVICES="0")
    assert done.stdout.splitlines()[0] == "fake fake"
    assert done.stderr.count("left out: 'cuda'") == 1
    assert "no PJRT library for CUDA is installed" in done.stderr


def test_without_hardware_the_automatic_choice_is_silent(tmp_path: Path) -> None:
    done = choose_beside_fake(tmp_path, "cuda", tmp_path)
    assert done.stdout.splitlines() == ["fake fake", "unavailable 500 False"]
    assert done.stderr == ""
