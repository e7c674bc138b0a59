"""Runs checks of the conformance kit; ids of checks and verdicts are strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from click.testing import CliRunner
from click.testing import Result as Invoked

from plugrt.plugins import Plugin
from plugrt_sdk.conformance import PluginSubject, registry
from plugrt_sdk.conformance.command import command
from plugrt_sdk.conformance.judge import judge
from plugrt_sdk.conformance.runner import Runner
from plugrt_sdk.conformance.target import Target


class Run(NamedTuple):
    """The results of a run by check, notes on its processes, facts of its client.

    ``heard`` lists the checks in the order of completion.
    """

    results: dict[str, Any]
    notes: Mapping[str, str]
    facts: Mapping[str, Any]
    heard: list[str]

    @property
    def verdicts(self) -> list[str]:
        """The verdicts, in the order of the checks."""
        return [str(result.verdict) for result in self.results.values()]


def checks(prefix: str | tuple[str, ...] = "") -> dict[str, Any]:
    """Returns the kit's checks by id: all, or those whose ids begin with ``prefix``."""
    return {name: check for name, check in registry.checks().items() if name.startswith(prefix)}


def find(name: str) -> Any:
    """Returns the check of that id."""
    return registry.find(name)


def select(*args: Any, **kwargs: Any) -> list[str]:
    """Returns the ids of the checks that ``plugrt conform`` selects by these arguments."""
    return [check.id for check in registry.select(*args, **kwargs)]


def run(kind: str, name: str, ids: Iterable[str], seconds: float = 60.0, *, jobs: int = 1,
        options: Mapping[str, Any] | None = None, argument: str = "") -> Run:  # fmt: skip
    """Runs checks in processes of their own on a plugin, a library or an object, by its name."""
    heard: list[str] = []
    target = Target(kind, name, options or {}, argument)
    runner = Runner(
        target, [registry.find(check) for check in ids], seconds, jobs=jobs,
        on_result=lambda check, _: heard.append(check.id),
    )  # fmt: skip
    return Run(runner.run(), runner.notes, runner.facts, heard)


def judged(load: Callable[[], Plugin], *ids: str, seconds: float = 30.0) -> list[Any]:
    """Returns the results of checks in this process, on the plugin that ``load`` makes."""
    subject = PluginSubject(Target("object", "made here"), load=load, seconds=seconds)
    return [judge(registry.find(name), subject) for name in ids]


def judge_one(load: Callable[[], Plugin], check: Any) -> Any:
    """Returns the result of a check that a test made, in this process."""
    return judge(check, PluginSubject(Target("object", "made here"), load=load))


def conform(*arguments: str) -> Invoked:
    """Runs ``plugrt conform`` in this process; the value that it returns is its exit code."""
    return CliRunner().invoke(command, list(arguments), standalone_mode=False)
