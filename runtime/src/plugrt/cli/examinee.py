"""The child process of ``plugrt doctor``: starts backends as a program would, and tries each.

Whatever the plugins do here (abort, hang, exit), what was said until then tells what was going on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from plugrt.errors import PlugrtError, Unimplemented, message_of, words_of
from plugrt.interface import Client
from plugrt.plugins.backends import initialise
from plugrt.plugins.record import Record, State
from plugrt.plugins.registry import Registry, default_registry
from plugrt.trial import try_client

Say = Callable[..., None]


def key(record: Record) -> list[str]:
    """What tells a row from others, in the parent's table and in the child's."""
    return [str(record.source), record.name, record.distribution, record.value]


class _Warnings(logging.Handler):
    """Hands on the warnings that a program would print."""

    def __init__(self, say: Say) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(warning=record.getMessage())


def examine(_: None, say: Say, registry: Registry | None = None) -> None:
    """Starts what the settings ask for; says steps, warnings, problems and the outcome."""
    registry = registry or default_registry()
    logger = logging.getLogger("plugrt")
    logger.addHandler(_Warnings(say))
    logger.propagate = False
    registry.listener = lambda text, record: say(step=text, of=key(record) if record else None)
    try:
        choice = initialise(registry)
        outcome: dict[str, Any] = {"chosen": list(choice.names), "why": choice.why}
    except PlugrtError as error:
        outcome = {"chosen": [], "error": str(error)}
    started = [record for record in registry.records if record.client is not None]
    counts = {record.name: _try(record, say) for record in started}
    rows = [{**r.as_dict(), "key": key(r)} for r in registry.records]
    say(done={**outcome, "devices": counts, "rows": rows})
    say(step="it ended, after all had worked", of=key(started[0]) if len(started) == 1 else None)


def _try(record: Record, say: Say) -> int:
    """Computes something small with a started backend; returns how many devices it has."""
    client = record.client
    assert client is not None
    step = ""

    def begin(name: str) -> None:
        nonlocal step
        step = name
        say(step=f"trying {record}: {name}", of=key(record))

    try:
        try_client(client, begin)
    except Unimplemented as error:
        say(warning=f"{record} cannot run programs ({step}): {error}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 a plugin's fault, whatever it raises
        words = message_of(error) if isinstance(error, PlugrtError) else words_of(error)
        reason = f"it started, but does not work ({step}): {words}"
        record.became(State.BROKEN, reason, f"PLUGRT_PLUGINS_BLOCK={record.name} leaves it out")
        say(problem=f"{record}: {reason}")
    return _count(client)


def _count(client: Client) -> int:
    try:
        return len(client.devices())
    except Exception:  # noqa: BLE001 the trial has met the same, and said so
        return 0
