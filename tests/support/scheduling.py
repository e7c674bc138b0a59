"""The assignment of tests to workers, if there are several (pytest-xdist)."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


class FixtureScheduling(LoadScopeScheduling):
    """Gives all tests that share a fixture of their module to one worker, others in order.

    Most such fixtures are a child with many results: mypy, doctor, JAX. Each worker that ran one of
    their tests would start its own. (``--dist loadgroup`` would do it by marks, but xdist 3.8 does
    not pass them on with pytest 9.)

    A worker that dies is replaced, the test it was running has failed, and its remaining tests run
    elsewhere. `LoadScopeScheduling` (xdist 3.8) waits forever there: it assigns again the tests
    that the dead worker had finished, and a worker without tests sends no report, although only a
    report makes it get more; it runs the deadly test again on each new worker; and it requests the
    tests of a worker that has not collected yet.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if shares_a_fixture(self.config.rootpath / file) else nodeid

    def remove_node(self, node: WorkerController) -> str | None:
        """Removes a worker; returns the test it died in, None if it had no tests."""
        unfinished: dict[str, dict[str, bool]] = {}
        for scope, tests in self.assigned_work.pop(node).items():
            for test, finished in tests.items():
                if not finished:
                    unfinished.setdefault(scope, {})[test] = False
        if not unfinished:
            return None
        scope, tests = next(iter(unfinished.items()))
        deadly = next(iter(tests))  # workers run tests in the order of assignment
        del tests[deadly]
        self.workqueue.update({scope: tests for scope, tests in unfinished.items() if tests})
        for other in self.assigned_work:
            self._reschedule(other)
        return deadly

    def _reschedule(self, node: WorkerController) -> None:
        """Gives a worker at least two tests: it runs its last known test only at the end."""
        if node not in self.registered_collections:
            return  # it is collecting; `schedule` calls this again
        # Its pipe is closed: it has died too, and `remove_node` reassigns its tests.
        with suppress(OSError):
            super()._reschedule(node)
            while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
                super()._reschedule(node)


@cache
def shares_a_fixture(file: Path) -> bool:
    """Whether a file of tests has a fixture of a module's scope."""
    return file.is_file() and 'scope="module"' in file.read_text()
