"""`of_cpu_launches`: the mark of tests of how the cpu plugin launches, which run on it alone."""

from __future__ import annotations

import os

import pytest

of_cpu_launches = pytest.mark.skipif(
    os.environ.get("JAX_PLATFORMS", "cpu") not in ("", "cpu"),
    reason="no launches of the cpu plugin here",
)
