"""The tests run on this device and on no other, and end at once where it cannot be started."""

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
