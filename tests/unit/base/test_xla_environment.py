"""XLA's log level while a library is loaded."""

from __future__ import annotations

import os

import pytest

from plugrt.base.xla_environment import quiet_logging, reserve_threads


def test_info_lines_are_kept_away_for_the_block_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    with quiet_logging():
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "1"
    assert "TF_CPP_MIN_LOG_LEVEL" not in os.environ


def test_a_level_of_the_users_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    with quiet_logging():
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"


@pytest.mark.parametrize(
    ("cores", "devices", "threads"), [(2, 1, None), (2, 2, "4"), (8, 8, "16"), (16, 8, None)]
)
def test_there_are_threads_for_two_launches_on_each_device(
    monkeypatch: pytest.MonkeyPatch, cores: int, devices: int, threads: str | None
) -> None:
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    monkeypatch.delenv("NPROC", raising=False)
    with reserve_threads(devices, cores):
        assert os.environ.get("PJRT_NPROC") == threads
    assert "PJRT_NPROC" not in os.environ


@pytest.mark.parametrize("name", ["PJRT_NPROC", "NPROC"])
def test_a_number_of_threads_of_the_users_stands(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    monkeypatch.setenv(name, "3")
    with reserve_threads(8, 1):
        assert os.environ[name] == "3"
        assert os.environ.get("PJRT_NPROC", "3") == "3"
    assert os.environ[name] == "3"
