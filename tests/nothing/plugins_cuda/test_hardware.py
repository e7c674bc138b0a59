"""Detection of a driver, in made-up trees of its files."""

from __future__ import annotations

import timeit
from pathlib import Path

import pytest

from plugrt_cuda import hardware

VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.133.20  Sun Mar  2 2026\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"


@pytest.fixture(autouse=True)
def _all_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize("file", hardware.DRIVER_FILES)
def test_one_file_of_the_driver_is_enough(tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).touch()
    answer = hardware.detect(tmp_path)
    assert answer.available
    assert file in answer.reason


def test_without_a_driver_the_way_to_compile_is_named(tmp_path: Path) -> None:
    answer = hardware.detect(tmp_path)
    assert not answer.available
    assert "no NVIDIA driver" in answer.reason
    assert 'plugrt.topology("cuda:h100")' in answer.cure


@pytest.mark.parametrize(("visible", "expected"), [("", False), ("-1", False), ("0,1", True)])
def test_hidden_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str, expected: bool
) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidiactl").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    answer = hardware.detect(tmp_path)
    assert answer.available is expected
    assert expected or "CUDA_VISIBLE_DEVICES" in answer.reason


@pytest.mark.parametrize(("text", "branch"), [(VERSION, 570), (OPEN, 580), ("what\n", None)])
def test_the_driver_states_its_branch(tmp_path: Path, text: str, branch: int | None) -> None:
    assert hardware.driver_branch(tmp_path) is None
    file = tmp_path / "proc/driver/nvidia/version"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert hardware.driver_branch(tmp_path) == branch


def test_looking_at_this_machine_is_cheap() -> None:
    # with this machine's files
    assert min(timeit.repeat(hardware.detect, number=1, repeat=20)) < 0.1
