"""Which worker runs which test, where there are several (pytest-xdist)."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


class FixtureScheduling(LoadScopeScheduling):
    """Gives all tests that share a fixture of their module to one worker, others as they come.

    Most such fixtures are a child that is asked many things: mypy, doctor, JAX. Each worker that
    ran one of their tests would start its own. (``--dist loadgroup`` would do it by marks, but
    xdist 3.8 does not hand them on with pytest 9.)

    A worker that dies is replaced, the test it was running has failed, and what it had before it
    runs elsewhere. `LoadScopeScheduling` (xdist 3.8) waits forever there: it hands out again what
    the dead worker had finished, and a worker that is given nothing to run reports nothing, which
    is when it would be given more; it runs the deadly test again on each new worker; and it asks a
    worker that has not collected yet for its tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if shares_a_fixture(self.config.rootpath / file) else nodeid

    def remove_node(self, node: WorkerController) -> str | None:
        """Takes a worker out; returns the test it died in, None if it had nothing to run."""
        unfinished: dict[str, dict[str, bool]] = {}
        for scope, tests in self.assigned_work.pop(node).items():
            for test, finished in tests.items():
                if not finished:
                    unfinished.setdefault(scope, {})[test] = False
        if not unfinished:
            return None
        scope, tests = next(iter(unfinished.items()))
        deadly = next(iter(tests))  # workers run tests in the order in which they get them
        del tests[deadly]
        self.workqueue.update({scope: tests for scope, tests in unfinished.items() if tests})
        for other in self.assigned_work:
            self._reschedule(other)
        return deadly

    def _reschedule(self, node: WorkerController) -> None:
        """Gives a worker work, at least two tests: it runs the last it knows of only at the end."""
        if node not in self.registered_collections:
            return  # it has just started; `schedule` comes here again when it has collected
        # Its pipe is closed: it has died too, and `remove_node` hands on what it was given here.
        with suppress(OSError):
            super()._reschedule(node)
            while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
                super()._reschedule(node)


@cache
def shares_a_fixture(file: Path) -> bool:
    """Whether a file of tests has a fixture of a module's scope."""
    return file.is_file() and 'scope="module"' in file.read_text()
