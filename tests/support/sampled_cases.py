"""A pytest plugin (``-p support.sampled_cases``): each test function runs with one of its cases.

Its name decides which: the same in each run. With more effort (`support.effort`), all run.
"""

from __future__ import annotations

import pytest

from support.effort import some_of


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects all cases of a function but one; pytest's summary has their number."""
    by_function: dict[str, list[pytest.Item]] = {}
    # By name, since pytest-randomly has shuffled them.
    for item in sorted(items, key=lambda item: item.nodeid):
        by_function.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {i for name, cases in by_function.items() for i in some_of(cases, 1, name)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
