"""`PluginSuite`: the kit's checks as tests in an author's own pytest run."""

from __future__ import annotations

import datetime
import fcntl
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import click
import pytest

from plugrt.errors import PlugrtError
from plugrt.interface import OptionValue
from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.judge import LAUNCH
from plugrt_sdk.conformance.profiles import sample
from plugrt_sdk.conformance.reports.report import make_row
from plugrt_sdk.conformance.reports.terminal import finding_lines
from plugrt_sdk.conformance.runner import Runner
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import Result, Verdict
from plugrt_sdk.conformance.waivers import Waiver, Waivers
from plugrt_sdk.conformance.worker import IMPORT, LIBRARY, START

_RESULTS = pytest.StashKey[Mapping[str, Result]]()
_WIDTH = 96


class PluginSuite:
    """The conformance kit as a class of tests, one for each check, with the check's id as its id.

    An author's test file needs a subclass and nothing else::

        from plugrt_sdk.conformance import PluginSuite


        class TestMine(PluginSuite):
            plugin = "mychip"

    The checks run in child processes, once for the class, when its first test begins: those whose
    tests are selected, on as many processes as pytest-xdist has workers. PASS and REFUSED pass;
    FAIL, CRASH and TIMEOUT fail; NO-HARDWARE skips. A check that ``waivers`` name is a strict
    ``xfail``. Without ``plugin`` it is the one of ``pytest --plugrt``.
    """

    __test__ = False

    plugin: ClassVar[str] = ""
    """The target, as for ``plugrt conform``: a plugin, a library, or module:object."""
    options: ClassVar[Mapping[str, OptionValue]] = {}
    """Create options."""
    level: ClassVar[int | None] = None
    """The highest level whose checks are tests; all by default."""
    quick: ClassVar[bool] = False
    """Whether one dtype represents all, as with ``plugrt conform --quick``."""
    words: ClassVar[str] = ""
    """Words in ids or titles, as for ``plugrt conform -k``."""
    seconds: ClassVar[float] = 30.0
    """The limit of one check."""
    jobs: ClassVar[int] = 1
    """The number of processes, without pytest-xdist."""
    seed: ClassVar[int] = 0
    """The seed of the random inputs."""
    waivers: ClassVar[str] = "conformance-waivers.toml"
    """The file of known failures, beside pytest's ini file; it need not exist."""

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if "__test__" not in vars(cls):
            cls.__test__ = True  # collected under any value of python_classes

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Makes a test for each selected check. pytest calls it for each test of the class."""
        if metafunc.function is not getattr(metafunc.cls, "test_check", None):
            return
        try:
            self._target(metafunc.config)
            waivers = self._waivers(metafunc.config).waivers
            checks = registry.select((), self.level, self.words)
            checks = sample(checks) if self.quick else checks
        except PlugrtError as error:
            raise pytest.Collector.CollectError(f"{metafunc.cls.__name__}: {error}") from error
        # Each check has its own limit; the first test waits for all checks.
        plugins = metafunc.config.pluginmanager
        marks = [pytest.mark.timeout(0)] if plugins.hasplugin("timeout") else []
        metafunc.parametrize("check", [
            pytest.param(check.id, id=check.id, marks=[*marks, *_forgive(waivers.get(check.id))])
            for check in checks
        ])  # fmt: skip

    def test_check(
        self,
        check: str,
        request: pytest.FixtureRequest,
        tmp_path_factory: pytest.TempPathFactory,
        record_property: Any,
    ) -> None:
        """Reports the kit's verdict on one check."""
        results = self._results(request, tmp_path_factory)
        result = results[check]
        causes = (IMPORT, LIBRARY, START, LAUNCH)
        cause = next((name for name in causes if _is_bad(results.get(name))), "")
        record_property("verdict", str(result.verdict))
        match result.verdict:
            case Verdict.NO_HARDWARE:
                pytest.skip(f"NO-HARDWARE: {result.got}")
            case Verdict.NOT_RUN if not cause or not result.applies or cause in _selected(request):
                pytest.skip(f"NOT-RUN: {result.got}")
            case Verdict.NOT_RUN:  # other tests do not report the cause
                pytest.fail(self._describe(cause, results[cause], request.config), pytrace=False)
            case verdict if not verdict.is_good:
                pytest.fail(self._describe(check, result, request.config), pytrace=False)

    test_check.__test__ = True  # type: ignore[attr-defined]  # whatever python_functions says

    def _target(self, config: pytest.Config) -> Target:
        """Returns the tested plugin. Raises `PlugrtError` if it does not exist."""
        name = self.plugin or config.getoption("plugrt", None)
        if not name:
            raise pytest.Collector.CollectError(
                f'{type(self).__name__} tests no plugin: set plugin = "NAME" in the class, or run '
                "pytest --plugrt NAME"
            )
        target = Target.parse(name, self.options)
        target.require(f"{type(self).__name__}.plugin")
        return target

    def _waivers(self, config: pytest.Config) -> Waivers:
        path = config.rootpath / self.waivers
        today = datetime.datetime.now(datetime.UTC).date()
        return Waivers.read(path, today) if path.exists() else Waivers()

    def _runner(self, config: pytest.Config, checks: Sequence[Check], jobs: int) -> Runner:
        tolerances = self._waivers(config).tolerances
        target = self._target(config)
        return Runner(target, checks, self.seconds, self.seed, jobs, tolerances)

    def _describe(self, check: str, result: Result, config: pytest.Config) -> str:
        runner = self._runner(config, (), 1)
        row = make_row(registry.find(check), result, runner, Waivers())
        return click.unstyle("\n".join(finding_lines(row, _WIDTH)))

    def _results(
        self, request: pytest.FixtureRequest, folders: pytest.TempPathFactory
    ) -> Mapping[str, Result]:
        """Returns the results of the class's selected checks; the first test runs them."""
        owner: pytest.Collector = request.node.parent
        if _RESULTS not in owner.stash:
            owner.stash[_RESULTS] = self._run(request, folders, _selected(request))
        return owner.stash[_RESULTS]

    def _run(
        self, request: pytest.FixtureRequest, folders: pytest.TempPathFactory, ids: Sequence[str]
    ) -> Mapping[str, Result]:
        """Runs checks. One of pytest-xdist's workers does so, and the others read its results."""
        checks = registry.select(ids)
        worker = getattr(request.config, "workerinput", None)
        if worker is None:
            return self._runner(request.config, checks, self.jobs).run()
        name = f"plugrt-{zlib.crc32(request.node.parent.nodeid.encode()):08x}"
        file = folders.getbasetemp().parent / f"{name}.json"
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # it ends with this process in any case
            if not file.exists():
                found = self._runner(request.config, checks, worker["workercount"]).run()
                _write(file, found)
        return _read(file)


def _selected(request: pytest.FixtureRequest) -> list[str]:
    """Returns the ids of the checks whose tests pytest has selected in this class."""
    return [
        str(item.callspec.params["check"])
        for item in request.session.items
        if item.parent is request.node.parent
        and isinstance(item, pytest.Function)
        and item.originalname == "test_check"
    ]


def _is_bad(result: Result | None) -> bool:
    return result is not None and result.verdict.is_bad


def _forgive(waiver: Waiver | None) -> list[pytest.MarkDecorator]:
    if waiver is None:
        return []
    reason = f"WAIVED until {waiver.until}: {waiver.reason} ({waiver.url})"
    return [pytest.mark.xfail(reason=reason, strict=True)]


def _write(file: Path, results: Mapping[str, Result]) -> None:
    file.write_text(json.dumps({name: result.as_dict() for name, result in results.items()}))


def _read(file: Path) -> dict[str, Result]:
    found = json.loads(file.read_text())
    return {name: Result.from_dict(result) for name, result in found.items()}
