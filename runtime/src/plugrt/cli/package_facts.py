"""Facts that installed packages tell ``plugrt doctor``, by the hook ``plugrt_doctor_facts``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plugrt.cli.doctor_child import report_log
from plugrt.errors import PluginBroken
from plugrt.plugins.offers.offers import collect_offers
from plugrt.plugins.record import Record
from plugrt.plugins.selection.backends import process_backends
from plugrt.plugins.table import Table
from plugrt.processes.run_in_child import Outcome, run_in_child

GROUP = "plugrt.doctor"


def ask_in_child(table: Table, seconds: float) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the facts of all packages, and warnings; nothing is started where there are none.

    A fact is a row of ``from`` (distribution and version), ``name`` and ``value``. What a package
    does to the process costs its own facts, and those of the packages after it.
    """
    if not table.implementing(GROUP):
        return [], []
    outcome = run_in_child("plugrt.cli.package_facts:tell", None, seconds)
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
    """Reports the facts one by one, as they are found, and the steps to them; in the child."""
    report_log(say)
    facts = collect_offers(process_backends().table, GROUP, "facts for doctor", _read)
    for rows in facts:
        for row in rows:
            say(fact=row)


def _read(record: Record, answer: Any) -> list[dict[str, Any]]:
    if not isinstance(answer, Mapping):
        raise PluginBroken(f"plugrt_doctor_facts gives {answer!r:.60}, no dict of facts by name")
    for name, value in answer.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
            raise PluginBroken(
                f"plugrt_doctor_facts gives {name!r:.60}: {value!r:.60}; a fact is a name and "
                "text, a number or a boolean"
            )
    return [{"from": record.who, "name": name, "value": value} for name, value in answer.items()]
