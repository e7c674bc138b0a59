"""Makes the site's page of the conformance kit's checks, from the code: ``tools/site.py`` asks.

As a script it adds the ids of new checks to ``docs/data/check_ids.txt``, which keeps all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Chapter, Check, Needs
from plugrt_sdk.conformance.checks import CHAPTERS
from plugrt_sdk.conformance.profiles import PROFILES, checks_of

ROOT = Path(__file__).parents[2]
IDS = ROOT / "docs/data/check_ids.txt"

INTRODUCTION = """\
# The checks of the conformance kit

These are the {total} checks that [`plugrt conform`](conformance.md) puts to a plugin, in the
order in which they run: {levels}.

*What must hold* is the check's statement, *if not* what users meet where it does not hold. A
*capability* is a field of `plugrt.interface.Capabilities`: what is declared must work, and what is
not declared must be refused. A *refusable* check may be refused whatever is declared.

| Profile | Checks | Runs with |
| :-- | --: | :-- |
{profiles}
"""
_NEEDS = {
    Needs.DISTRIBUTION: "needs no import",
    Needs.PLUGIN: "needs no client",
    Needs.CLIENT: "",
    Needs.TWO_DEVICES: "two devices",
    Needs.LIBRARY: "a PJRT library",
    Needs.LIBRARY_CLIENT: "a PJRT library with a client",
    Needs.PROCESS: "a process of its own",
}


def page() -> str:
    """Returns the whole page."""
    counts = registry.level_counts()
    levels = ", ".join(f"{n} of level {int(level)}" for level, n in counts.items())
    profiles = "\n".join(
        f"| `{name}` | {len(checks_of(name))} | `plugrt conform mychip --profile {name}` |"
        for name in PROFILES
    )
    out = INTRODUCTION.format(total=len(registry.checks()), levels=levels, profiles=profiles)
    return out + "".join(map(_describe_chapter, CHAPTERS))


def _describe_chapter(chapter: Chapter) -> str:
    checks = list(chapter)
    rows = "\n".join(map(_describe, checks))
    return (
        f"\n## `{chapter.prefix}`\n\n{_introduction(checks[0])}\n\n"
        f"| Check | Level | What must hold | If not | Rests on |\n| :-- | --: | :-- | :-- | :-- |\n"
        f"{rows}\n"
    )


def _introduction(check: Check) -> str:
    """Returns the first line of the docstring of the module that a check is in."""
    body = check.run.func if isinstance(check.run, partial) else check.run
    text = inspect.getdoc(inspect.getmodule(body)) or ""
    return cell(text.partition("\n")[0])


def _describe(check: Check) -> str:
    capability = f"capability `{check.capability}`" if check.capability else ""
    refusable = "refusable" if check.refusable else ""
    conditions = ", ".join(filter(None, (capability, _NEEDS[check.needs], refusable)))
    statement = cell(check.title) + (f" ({conditions})" if conditions else "")
    return (
        f"| `{check.id}` | {int(check.level)} | {statement} | {cell(check.why)} "
        f"| {cell(check.rests_on)} |"
    )


_SPECIAL = str.maketrans({c: f"\\{c}" for c in "*[]<>|#"})


def cell(text: str) -> str:
    """Returns a text for a cell of a table; what is between backquotes stays as it is."""
    parts = " ".join(text.replace("``", "`").split()).split("`")
    if len(parts) % 2 == 0:
        raise ValueError(f"an odd number of backquotes: {text}")
    for i, part in enumerate(parts):  # a bar ends a cell between backquotes, too
        parts[i] = part.replace("|", "\\|") if i % 2 else part.translate(_SPECIAL)
    return "`".join(parts)


def ids(chapters: Iterable[Chapter] = CHAPTERS) -> str:
    """Returns the ids that there ever were, those of new checks among them, a line each."""
    known = IDS.read_text(encoding="utf-8").split()
    now = [check.id for chapter in chapters for check in chapter]
    return "".join(f"{name}\n" for name in sorted({*known, *now}))


def main() -> None:
    """Writes the ids."""
    IDS.write_text(ids(), encoding="utf-8")


if __name__ == "__main__":
    main()
