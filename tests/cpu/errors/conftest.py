"""Fixtures of tests that make wrong calls."""

from __future__ import annotations

from typing import Any

import pytest

import plugrt
from plugrt.errors import Cancelled


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has compilation refuse every program, so that valid calls end there.

    The tests need no results, and compiling hundreds of programs would need most of the time.
    """

    def refuse(*_: Any) -> Any:
        raise Cancelled("not compiled in this test")

    monkeypatch.setattr(type(plugrt.devices()[0].client), "compile", refuse)
