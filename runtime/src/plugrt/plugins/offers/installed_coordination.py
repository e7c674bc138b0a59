"""`find_coordination`: the coordination service that an installed package offers."""

from __future__ import annotations

from typing import Any

from plugrt.errors import PluginBroken, PluginUnavailable
from plugrt.plugins.coordination import Coordination
from plugrt.plugins.offers.offers import Kept
from plugrt.plugins.record import Record
from plugrt.plugins.table import Table


def _read(record: Record, answer: Any) -> Coordination:
    if not isinstance(answer, Coordination):
        raise PluginBroken(
            f"plugrt_coordination gives {answer!r:.60}, no plugrt.plugins.coordination.Coordination"
        )
    return answer


_offered = Kept("plugrt.coordination", "coordination service", _read)


def find_coordination(table: Table) -> Coordination:
    """Returns the first coordination service that an installed package offers.

    Raises `PluginUnavailable` where there is none.
    """
    for offered in _offered.get(table):
        return offered
    raise PluginUnavailable(
        "no installed package offers a coordination service, through which processes find each "
        'other; plugrt-cpu has jaxlib\'s: pip install "plugrt[cpu]"'
    )
