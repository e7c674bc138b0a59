"""Launches whose errors come with events: the asynchronous example, in process and through C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt.errors import ResourceExhausted
from plugrt.plugins import LibraryPlugin, Plugin
from plugrt_sdk import BackendPlugin
from plugrt_sdk.export import export_capsule
from support import kit
from support.markdown import load_script

EXAMPLE = load_script("examples/asynchronous_backend.py")
CHECKS = [*kit.checks("failures.")]


class Device(EXAMPLE.Worker):  # type: ignore[name-defined, misc]
    """A device whose memory owns each result: the check for views of smaller arrays finds none."""

    def submit(self, work: Any, count: int = 1) -> Any:
        return super().submit(lambda: [np.array(value) for value in work()], count)


class GivesZeros(Device):
    """A device that computes with zeros if an argument failed."""

    def submit(self, work: Any, count: int = 1) -> Any:
        def forgiving() -> Any:
            try:
                return work()
            except ResourceExhausted:  # the error of a failed argument
                return [np.zeros(3, np.float32)] * count

        return super().submit(forgiving, count)


def plugin(exported: bool, worker: Any = Device) -> Plugin:
    """Returns the example, directly or as an exported library."""

    def backend() -> Any:
        made = EXAMPLE.Asynchronous(2)
        made.workers = [worker() for _ in made.workers]
        return made

    found = BackendPlugin("asynchronous", backend)
    if not exported:
        return found
    return LibraryPlugin(
        "exported", c_api=export_capsule(lambda **options: found.create_client(options))
    )


@pytest.mark.parametrize("exported", [False, True], ids=["in process", "through C"])
def test_errors_that_come_later_pass_the_checks_of_failures(exported: bool) -> None:
    found = dict(zip(CHECKS, kit.judged(lambda: plugin(exported), *CHECKS), strict=True))
    assert {name: str(result.verdict) for name, result in found.items()} == dict.fromkeys(
        CHECKS, "PASS"
    ), found


@pytest.mark.parametrize("exported", [False, True], ids=["in process", "through C"])
def test_numbers_made_of_what_failed_are_found(exported: bool) -> None:
    [found] = kit.judged(lambda: plugin(exported, GivesZeros), "failures.passed_on")
    assert found.verdict == "FAIL"
    assert "a launch on the result of one that failed" in found.expected
