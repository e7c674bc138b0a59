"""Importing jaxlib: supported versions, and the error for others."""

from __future__ import annotations

import os
import sys

import pytest

from plugrt.errors import PluginIncompatible
from plugrt_cpu.jaxlib_import import import_jaxlib


@pytest.mark.parametrize("version", ["0.8.2", "0.4.38"])
def test_too_old(version: str) -> None:
    with pytest.raises(PluginIncompatible, match=rf"jaxlib >= 0.9; installed: {version}.*pip"):
        import_jaxlib(version)


def test_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jaxlib._jax", None)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    with pytest.raises(PluginIncompatible, match=r"plugrt-cpu .*installed: none"):
        import_jaxlib("none")
    assert "TF_CPP_MIN_LOG_LEVEL" not in os.environ
