"""Which worker runs which test, where there are several (pytest-xdist)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parents[1]


class FixtureScheduling(LoadScopeScheduling):
    """Gives all tests that share a fixture of their module to one worker, others as they come.

    Most such fixtures are a child that is asked many things: mypy, doctor, JAX. Each worker that
    ran one of their tests would start its own. (``--dist loadgroup`` would do it by marks, but
    xdist 3.8 does not hand them on with pytest 9.)
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if shares_a_fixture(file) else nodeid


@cache
def shares_a_fixture(file: str) -> bool:
    """Whether a file of tests has a fixture of a module's scope."""
    path = TESTS.parent / file
    return path.is_file() and 'scope="module"' in path.read_text()
