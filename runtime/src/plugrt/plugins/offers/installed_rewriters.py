"""`installed_rewriters`: what installed packages offer by the hook ``plugrt_program_rewriters``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plugrt.errors import PluginBroken
from plugrt.plugins.offers.offers import Kept
from plugrt.plugins.record import Record
from plugrt.plugins.table import Table

if TYPE_CHECKING:
    from plugrt.plugins.hookspecs import ProgramRewriter


def _read(record: Record, answer: Any) -> tuple[ProgramRewriter, ...]:
    if isinstance(answer, str) or not isinstance(answer, Sequence):
        raise PluginBroken(f"plugrt_program_rewriters gives {answer!r:.60}, no list of functions")
    if wrong := [rewriter for rewriter in answer if not callable(rewriter)]:
        raise PluginBroken(f"plugrt_program_rewriters gives {wrong[0]!r:.60}, no function")
    return tuple(answer)


_rewriters = Kept("plugrt.rewriters", "program rewriters", _read)


def installed_rewriters(table: Table) -> tuple[ProgramRewriter, ...]:
    """Returns the functions that entry points of the group ``plugrt.rewriters`` offer.

    They are imported the first time. A package that fails is named in a warning and left out.
    """
    return tuple(rewriter for offer in _rewriters.get(table) for rewriter in offer)
