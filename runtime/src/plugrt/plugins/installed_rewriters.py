"""`installed_rewriters`: what installed packages offer by the hook ``plugrt_program_rewriters``."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from plugrt.errors import describe
from plugrt.plugins.hooks import Hooks
from plugrt.plugins.hookspecs import ProgramRewriter
from plugrt.plugins.loading import import_value
from plugrt.plugins.log import logger
from plugrt.plugins.record import Record
from plugrt.plugins.table import Table

_of_tables: WeakKeyDictionary[Table, tuple[ProgramRewriter, ...]] = WeakKeyDictionary()
_lock = threading.Lock()


def installed_rewriters(table: Table) -> tuple[ProgramRewriter, ...]:
    """Returns the functions that entry points of the group ``plugrt.rewriters`` offer.

    They are imported the first time. A package that fails is named in a warning and left out.
    """
    found = _of_tables.get(table)
    if found is None:
        with _lock:
            found = _of_tables.get(table)
            if found is None:
                hooks = Hooks(table.config.trace_plugins)
                found = tuple(f for record in table.rewriters for f in _load(record, hooks))
                _of_tables[table] = found
    return found


def _load(record: Record, hooks: Hooks) -> list[ProgramRewriter]:
    try:
        offered = import_value(record)
        hooks.register(offered, record.who)
        return hooks.collect_rewriters(offered)
    except Exception as error:  # noqa: BLE001 one package's fault must not disable the others
        logger.warning("the program rewriters of %s are left out: %s", record.who, describe(error))
        return []
