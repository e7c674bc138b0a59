"""The child process of ``plugrt doctor``: starts backends as a program would, and tries each.

If a plugin aborts, hangs or exits here, the last report names the step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from plugrt.capi.probing.trial_computation import try_client
from plugrt.errors import PluginBroken, PlugrtError, Unimplemented, describe, read_message
from plugrt.interface import Client
from plugrt.plugins.offers.offers import collect_offers
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record, State
from plugrt.plugins.selection.backends import process_backends
from plugrt.plugins.selection.clients import Backends
from plugrt.processes.run_in_child import Outcome, run_in_child

Say = Callable[..., None]


class _Steps(logging.Handler):
    """Reports the steps that ``plugrt.plugins`` logs, with their rows, and all warnings."""

    def __init__(self, say: Say) -> None:
        super().__init__(logging.DEBUG)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            self._say(warning=record.getMessage())
        elif hasattr(record, "row"):
            self._say(step=record.getMessage(), of=record.row and record.row.identity)


def examine(_: None, say: Say, backends: Backends | None = None) -> None:
    """Starts the requested backends; reports steps, warnings, problems and the outcome."""
    backends = backends or process_backends()
    report_log(say)
    try:
        choice = backends.initialise()
        outcome: dict[str, object] = {"chosen": list(choice.names), "why": choice.why}
    except PlugrtError as error:
        outcome = {"chosen": [], "error": read_message(error)}
    started = [record for record in backends.table.rows if record.client is not None]
    counts = {record.name: _try(record, say) for record in started}
    rows = [{**r.as_dict(), "key": r.identity} for r in backends.table.rows]
    say(done={**outcome, "devices": counts, "rows": rows})
    say(
        step="it ended, after all had worked", of=started[0].identity if len(started) == 1 else None
    )


def report_log(say: Say) -> None:
    """Reports log records from now on, instead of printing warnings."""
    logger = logging.getLogger("plugrt")
    logger.addHandler(_Steps(say))
    logger.propagate = False
    logging.getLogger("plugrt.plugins").setLevel(logging.DEBUG)


def _try(record: Record, say: Say) -> int:
    """Runs a small computation on a started backend; returns its number of devices."""
    client = record.client
    assert client is not None
    step = ""

    def begin(name: str) -> None:
        nonlocal step
        step = name
        say(step=f"trying {record}: {name}", of=record.identity)

    try:
        try_client(client, begin)
    except Unimplemented as error:
        say(warning=f"{record} cannot run programs ({step}): {error}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 a plugin may raise anything
        words = read_message(error) if isinstance(error, PlugrtError) else describe(error)
        reason = f"it started, but does not work ({step}): {words}"
        cure = f"PLUGRT_PLUGINS_BLOCK={record.name} excludes it"
        record.set_state(State.BROKEN, reason, cure)
        say(problem=f"{record}: {reason}; {cure}")
    return _count(client)


def _count(client: Client) -> int:
    try:
        return len(client.devices())
    except Exception:  # noqa: BLE001 the trial has reported it
        return 0


GROUP = "plugrt.doctor"


def ask_in_child(table: Table, seconds: float) -> tuple[list[dict[str, object]], list[str]]:
    """Returns the facts of all packages, and warnings; starts no child if no package has facts.

    A fact is a row of ``from`` (distribution and version), ``name`` and ``value``. If a package
    ends the process, its facts and those of the later packages are missing.
    """
    if not table.implementing(GROUP):
        return [], []
    outcome = run_in_child("plugrt.cli.doctor_child:tell", None, seconds)
    facts = [line["fact"] for line in outcome.lines if "fact" in line]
    warnings = [line["warning"] for line in outcome.lines if "warning" in line]
    return facts, warnings + _describe_end(outcome)


def _describe_end(outcome: Outcome) -> list[str]:
    remarks = [f"asking packages for facts {remark}" for remark in outcome.remarks()]
    if outcome.succeeded:
        return remarks
    steps = [line["step"] for line in outcome.lines if "step" in line]
    doing = steps[-1] if steps else "looking for packages with facts"
    return [*remarks, f"the process {outcome.ending} while {doing}; the other facts are lost"]


def tell(_: None, say: Callable[..., None]) -> None:
    """In the child: reports the facts one by one, as they are found, and the steps."""
    report_log(say)
    facts = collect_offers(process_backends().table, GROUP, "facts for doctor", _read)
    for rows in facts:
        for row in rows:
            say(fact=row)


def _read(record: Record, answer: object) -> list[dict[str, object]]:
    if not isinstance(answer, Mapping):
        raise PluginBroken(
            f"plugrt_doctor_facts returned {answer!r:.60}; a dict of facts by name is needed"
        )
    for name, value in answer.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
            raise PluginBroken(
                f"plugrt_doctor_facts gives {name!r:.60}: {value!r:.60}; a fact is a name and "
                "text, a number or a boolean"
            )
    return [{"from": record.who, "name": name, "value": value} for name, value in answer.items()]
