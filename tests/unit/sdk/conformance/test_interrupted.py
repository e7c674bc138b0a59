"""A run that is interrupted has the results of the checks that had ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import pytest

from plugrt.processes.run_in_child import run_in_child
from plugrt_sdk.conformance import Needs, registry, runner
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import Result, Verdict
from support.watched_calls import at_calls

PASS = Verdict.PASS
FIRST, SECOND, THIRD = [c for c in registry.checks().values() if c.needs is Needs.DISTRIBUTION][:3]
EXIT = registry.find("client.exit")


def end(check: Check) -> dict[str, Any]:
    return {"end": check.id, "result": Result(PASS).as_dict()}


@pytest.fixture
def says() -> Iterator[list[dict[str, Any]]]:
    """Replaces a process by one that prints these lines and is then interrupted."""
    lines: list[dict[str, Any]] = []

    def interrupt(inputs: Mapping[str, Any], _: object) -> NoReturn:
        for line in lines:
            inputs["on_line"](line)
        raise KeyboardInterrupt

    with at_calls([run_in_child], interrupt):
        yield lines


def test_results_are_known_before_the_process_ends(says: list[dict[str, Any]]) -> None:
    heard = []
    run = runner.Runner(
        Target("plugin", "numpy"), [FIRST, SECOND, THIRD],
        on_result=lambda check, result: heard.append((check.id, result.verdict)),
    )  # fmt: skip
    says += [{"begin": FIRST.id}, end(FIRST), {"begin": SECOND.id}, end(SECOND),
             {"begin": THIRD.id}, {"end": "no.check", "result": 1}]  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert heard == [(FIRST.id, PASS), (SECOND.id, PASS)]
    found = run.results()
    assert [result.verdict for result in found.values()] == [PASS, PASS, Verdict.NOT_RUN]
    assert found[THIRD.id].got == "the run was interrupted before its end"


def test_a_check_of_which_the_end_of_the_process_is_part_has_not_ended_before(
    says: list[dict[str, Any]],
) -> None:
    run = runner.Runner(Target("plugin", "numpy"), [EXIT])
    says += [{"begin": EXIT.id}, end(EXIT)]
    with pytest.raises(KeyboardInterrupt):
        run._run_batch([EXIT])
    assert run.results()[EXIT.id].verdict is Verdict.NOT_RUN
