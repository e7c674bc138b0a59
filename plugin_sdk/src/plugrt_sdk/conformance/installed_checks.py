"""`installed_chapters`: checks of installed packages (hook ``plugrt_conformance_checks``)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any

from plugrt.errors import PluginBroken
from plugrt.interface import Capabilities
from plugrt.plugins.offers.offers import collect_offers
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record
from plugrt.plugins.selection.backends import process_backends
from plugrt_sdk.conformance.check import Chapter, Check

GROUP = "plugrt.conformance"


def installed_chapters(taken: Collection[str], table: Table | None = None) -> list[Chapter]:
    """Returns the chapters of installed packages.

    Ids must not begin with one of ``taken``, which are the kit's. Warns of a package that fails,
    and skips it.
    """
    owners = dict.fromkeys(taken, "the kit")

    def read(record: Record, answer: Any) -> list[Chapter]:
        if isinstance(answer, str) or not isinstance(answer, Sequence):
            raise PluginBroken(
                f"plugrt_conformance_checks gives {answer!r:.60}, no list of Chapter"
            )
        owner = owners.setdefault(record.name, record.who)
        if owner != record.who:
            raise PluginBroken(f"ids that begin with {record.name!r} are those of {owner}")
        _check(record, answer)
        return [*answer]

    of = table or process_backends().table
    offers = collect_offers(of, GROUP, "conformance checks", read)
    return [chapter for chapters in offers for chapter in chapters]


def _check(record: Record, chapters: Sequence[Any]) -> None:
    ids: set[str] = set()
    for chapter in chapters:
        if not isinstance(chapter, Chapter):
            raise PluginBroken(
                f"plugrt_conformance_checks gives {chapter!r:.60}, which is no "
                "plugrt_sdk.conformance.Chapter"
            )
        if chapter.prefix != record.name:
            raise PluginBroken(
                f"the ids of its checks begin with {chapter.prefix!r}; they begin with the name of "
                f"the entry point, {record.name!r}"
            )
        for check in chapter:
            if check.id in ids:
                raise PluginBroken(f"two of its checks have the id {check.id}")
            ids.add(check.id)
            _check_check(check)
    if not ids:
        raise PluginBroken("plugrt_conformance_checks gives no check")


def _check_check(check: Check) -> None:
    known = [field.name for field in fields(Capabilities)]
    if check.capability and check.capability not in known:
        raise PluginBroken(
            f"its check {check.id} is of the capability {check.capability!r}, which "
            "plugrt.interface.Capabilities does not have"
        )
    if not check.title:
        raise PluginBroken(f"its check {check.id} has no title: the docstring's first line is it")
