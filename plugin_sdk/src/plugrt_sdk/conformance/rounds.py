"""`merge_rounds`: combines the results of several runs of each check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from plugrt_sdk.conformance.verdict import Result, Verdict

_WORST = (Verdict.CRASH, Verdict.TIMEOUT, Verdict.FAIL)


def merge_rounds(rounds: Sequence[Mapping[str, Result]]) -> dict[str, Result]:
    """Returns the worst result of each check, with the counts of its verdicts if they differ.

    A check with different good verdicts is a FAIL. Rounds that did not run it do not count.
    """
    names = dict.fromkeys(name for found in rounds for name in found)
    return {name: _merge([found[name] for found in rounds if name in found]) for name in names}


def _merge(results: Sequence[Result]) -> Result:
    tried = [r for r in results if r.verdict is not Verdict.NOT_RUN] or results[:1]
    verdicts = [r.verdict for r in tried]
    if len(set(verdicts)) == 1:
        return tried[0]
    counted = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    said = f"of {len(tried)} rounds {counted}"
    for verdict in _WORST:
        if verdict in verdicts:
            worst = tried[verdicts.index(verdict)]
            return replace(worst, got=f"{said}: {worst.got}")
    return replace(tried[0], verdict=Verdict.FAIL, expected="one verdict", got=said)
