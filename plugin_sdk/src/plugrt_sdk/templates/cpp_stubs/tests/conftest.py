"""The tests run on this device only; tests of functions that are still stubs should fail.

``pytest -rx`` lists the missing functions: write these next.
"""

import os
import re
from collections.abc import Generator
from typing import Any

import pytest

from my_chip import NAME
from my_chip.for_plugrt import plugin

os.environ["JAX_PLATFORMS"] = NAME
os.environ["PLUGRT_STRICT_PLUGINS"] = "1"  # a plugin that fails is an error


@pytest.fixture(autouse=True)
def client_is_there(request: pytest.FixtureRequest) -> None:
    """Creates a client, which the tests of the device need."""
    if request.path.name in ("test_my_chip.py", "test_under_jax.py"):
        plugin.create_client({}).close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Reports a test that needs a stub as one that is expected to fail, with the stub's name."""
    report = yield
    stub = call.excinfo and re.search(r"PJRT_\w+ is\s+not\s+written\s+yet", str(call.excinfo.value))
    if stub:
        report.outcome, report.wasxfail = "skipped", " ".join(stub[0].split())
    return report
