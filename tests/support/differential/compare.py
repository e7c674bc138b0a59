"""`compare`: what differs between the outcomes of a case with plugrt and with JAX."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import numpy as np

from support.differential.outcome import Leaf, Outcome

TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float64": 1e-9, "complex128": 1e-9}


@dataclass(frozen=True)
class Difference:
    """One difference: its kind, the step, and both sides' answers as text."""

    what: str
    """``raises`` (plugrt alone), ``accepts`` (JAX alone raises), ``class`` (of the exceptions),

    ``structure``, ``shape``, ``dtype``, ``weak``, ``committed``, ``sharding``, ``value``,
    ``deleted``, ``traces`` or ``input_shardings``."""
    step: str
    path: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"{self.what} of {self.step}{self.path}: plugrt {self.ours} | JAX {self.theirs}"


def caught_as(error: BaseException) -> type[BaseException]:
    """Returns the first built-in class of an exception, which programs catch."""
    found: list[type[BaseException]] = [
        c for c in type(error).__mro__ if getattr(builtins, c.__name__, None) == c
    ]
    return found[0]


def told(error: BaseException) -> str:
    """Returns the class and the first line of an exception."""
    cls = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    return f"{cls}: {str(error).strip().partition(chr(10))[0]:.300}"


def compare(ours: Outcome, theirs: Outcome) -> list[Difference]:
    """Returns what differs, in the order of the steps; nothing after one that raised."""
    found: list[Difference] = []
    mine, other = ours.error, theirs.error
    for step in theirs.steps:
        one, two = ours.steps.get(step), theirs.steps[step]
        if isinstance(one, dict) and isinstance(two, dict):
            found += _compare_leaves(step, one, two)
    if mine and other:
        if not isinstance(mine[1], caught_as(other[1])):
            found.append(Difference("class", other[0], "", told(mine[1]), told(other[1])))
    elif mine:
        found.append(Difference("raises", mine[0], "", told(mine[1]), "returns"))
    elif other:
        found.append(Difference("accepts", other[0], "", "returns", told(other[1])))
    if not (mine or other):
        for i, (a, b) in enumerate(zip(ours.deleted, theirs.deleted, strict=True)):
            if a != b:
                of_its_type = ours.types[i] in _types(ours)
                said = f"{a}, and a result has its type" if of_its_type else str(a)
                found.append(Difference("deleted", "call", f"[{i}]", said, str(b)))
        if ours.traces != theirs.traces:
            found.append(Difference("traces", "call", "", str(ours.traces), str(theirs.traces)))
    return found


def _types(outcome: Outcome) -> set[str]:
    steps = (outcome.steps.get(name, {}) for name in ("call", "again"))
    return {f"{leaf.dtype}{leaf.shape}" for step in steps for leaf in step.values()}


def _compare_leaves(step: str, ours: dict[str, Any], theirs: dict[str, Any]) -> list[Difference]:
    if step == "input_shardings":
        return [
            Difference("input_shardings", step, path, str(ours.get(path)), str(theirs[path]))
            for path in theirs
            if ours.get(path) != theirs[path]
        ]
    if [*ours] != [*theirs]:
        return [Difference("structure", step, "", str([*ours]), str([*theirs]))]
    found = []
    for path, b in theirs.items():
        a: Leaf = ours[path]
        differs = [
            (what, str(x), str(y))
            for what, x, y in [
                ("structure", a.kind, b.kind), ("shape", a.shape, b.shape),
                ("dtype", a.dtype, b.dtype), ("weak", a.weak, b.weak),
                ("committed", a.committed, b.committed), ("sharding", a.parts, b.parts),
            ]
            if x != y
        ]  # fmt: skip
        if a.shape == b.shape and not _same_value(a.value, b.value):
            differs.append(("value", _shown(a.value), _shown(b.value)))
        found += [Difference(what, step, path, x, y) for what, x, y in differs]
    return found


def _shown(value: Any) -> str:
    return " ".join(f"{value!r:.400}".split())


def _same_value(a: Any, b: Any) -> bool:
    if not isinstance(b, np.ndarray | np.generic):
        return a is b or a == b or (a != a and b != b)
    a, b = np.asarray(a), np.asarray(b)
    if b.dtype.kind not in "fcV" or a.dtype.kind not in "fcV":
        return bool(np.array_equal(a, b))
    tolerance = TOLERANCES.get(str(b.dtype), 1e-4)
    if b.dtype.kind == "V" or b.dtype == np.float16:
        a, b = a.astype(np.float32), b.astype(np.float32)
    finite = np.abs(b[np.isfinite(b)])
    scale = tolerance * float(max(1.0, finite.max(initial=0)))
    with np.errstate(all="ignore"):
        return bool(np.allclose(a, b, rtol=tolerance, atol=scale, equal_nan=True))
