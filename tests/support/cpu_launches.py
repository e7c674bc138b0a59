"""`of_cpu_launches`: the mark of tests of the cpu plugin's launches, which need this plugin."""

from __future__ import annotations

import os

import pytest

of_cpu_launches = pytest.mark.skipif(
    os.environ.get("JAX_PLATFORMS", "cpu") not in ("", "cpu"),
    reason="no launches of the cpu plugin here",
)
