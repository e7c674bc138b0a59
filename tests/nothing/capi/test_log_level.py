"""XLA's log level while a library is loaded."""

from __future__ import annotations

import os

import pytest

from plugrt.capi.log_level import few_log_lines


def test_info_lines_are_kept_away_for_the_block_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    with few_log_lines():
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "1"
    assert "TF_CPP_MIN_LOG_LEVEL" not in os.environ


def test_a_level_of_the_users_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    with few_log_lines():
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
