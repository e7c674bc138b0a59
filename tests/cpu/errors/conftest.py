"""Fixtures of tests that make wrong calls."""

from __future__ import annotations

from typing import Any

import pytest

import plugrt
from plugrt.errors import Cancelled


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes compilation refuse every program: valid calls end there.

    Their results do not matter for errors, and compiling hundreds of programs would cost most of
    the time.
    """

    def refuse(*_: Any) -> Any:
        raise Cancelled("not compiled in this test")

    monkeypatch.setattr(type(plugrt.devices()[0].client), "compile", refuse)
