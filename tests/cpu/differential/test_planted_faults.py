"""Wrong results of plugrt are found, also in calls with a listed difference.

An entry of `docs/data/jax_deviations.toml` covers its own class of differences only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.requirements import needs_jax

pytestmark = needs_jax

Change = Callable[[Any], dict[str, Any]]


def on_another_device(leaf: Any) -> dict[str, Any]:
    """Puts the first part of a result on a wrong device."""
    rest = dict(leaf.parts)
    return {"parts": {6: rest.pop(next(iter(rest))), **rest}}


def whole_on_each(leaf: Any) -> dict[str, Any]:
    """Puts a result on the second half of the devices only."""
    return {"parts": {d: part for d, part in leaf.parts.items() if d > 3}}


def other_value(leaf: Any) -> dict[str, Any]:
    """Changes the last element, whose divisor is not 0."""
    value = np.array(leaf.value)
    value.flat[-1] = not value.flat[-1] if value.dtype == bool else value.flat[-1] + 1
    return {"value": value}


def of_another_class(leaf: Any) -> dict[str, Any]:
    """Returns an object that is no array."""
    return {"kind": "NoneType"}


def uncommitted(leaf: Any) -> dict[str, Any]:
    """Turns a committed array into an uncommitted one, or back."""
    return {"committed": not leaf.committed}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("known-without-the-array", on_another_device),
        ("known-without-the-array", other_value),
        ("integer-division", other_value),
        ("choice-of-the-compiler", whole_on_each),
        ("choice-of-the-compiler", uncommitted),
        ("from-jax-without-jit", other_value),
        ("from-jax-without-jit", of_another_class),
        ("rows-on-the-default-device", on_another_device),
        ("rows-on-the-default-device", other_value),
    ],
)
def test_another_fault_in_the_same_call_is_found(name: str, change: Change) -> None:
    from support.differential.compare import compare
    from support.differential.deviations import entries, unknown
    from support.differential.outcome import run

    [case] = [entry.example for entry in entries() if entry.id == name]
    ours, theirs = run(case, ours=True), run(case, ours=False)
    assert unknown(case, compare(ours, theirs)) == []
    ours.steps["call"] = {
        path: replace(leaf, **change(leaf)) if leaf.kind == "array" else leaf
        for path, leaf in ours.steps["call"].items()
    }
    assert unknown(case, compare(ours, theirs)) != []


def test_a_default_device_that_is_ignored_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import plugrt
    from plugrt.execution.placement import default_device
    from support.differential.deviations import unknown
    from support.differential.generate import FORMS, generate
    from support.differential.report import differences_of

    def decided(form: str) -> list[Any]:
        cases = [generate(form, seed) for seed in range(50)]
        found = [c for c in cases if "default_device" in c.setting or "of_config" in c.setting]
        return [c for c in found if "devices[3]" not in c.setting]

    cases = [case for form in FORMS for case in decided(form)]
    assert {c.setting.partition("(")[0] for c in cases} == {"m.default_device", "device_of_config"}
    assert any("device=devices" in c.body for c in cases)
    plugrt.clear_caches()
    monkeypatch.setattr(default_device, "_find_default", lambda _: plugrt.devices()[0])
    found = [c for c in cases if unknown(c, differences_of(c))]
    monkeypatch.undo()
    plugrt.clear_caches()
    assert 3 * len(found) > len(cases)
