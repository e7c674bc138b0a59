"""Runs the tests on this device only, and stops at once if it cannot start."""

from __future__ import annotations

import os

import pytest

import plugrt
from plugrt.errors import PluginError

os.environ["JAX_PLATFORMS"] = "reference"


def pytest_sessionstart() -> None:
    try:
        plugrt.devices()
    except PluginError as error:
        pytest.exit(f"{error}\n(these tests are of the installed package: pip install .)", 2)
