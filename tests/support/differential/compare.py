"""`compare`: the differences between the outcomes of a case with plugrt and with JAX."""

from __future__ import annotations

import builtins
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from support.differential.outcome import Leaf, Outcome

TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float64": 1e-9, "complex128": 1e-9}


@dataclass(frozen=True)
class Difference:
    """One difference: its kind, the step, and both sides' answers as text."""

    what: str
    """``raises`` (plugrt alone), ``accepts`` (JAX alone raises), ``class`` (of the exceptions),

    ``structure``, ``shape``, ``dtype``, ``weak``, ``committed``, ``sharding``, ``memory_kind``,
    ``value``, ``deleted``, ``traces`` or ``input_shardings``."""
    step: str
    path: str
    ours: str
    theirs: str
    values: tuple[Any, Any] | None = field(default=None, compare=False, repr=False)
    """Both sides' arrays, of a difference of values."""

    def __str__(self) -> str:
        return f"{self.what} of {self.step}{self.path}: plugrt {self.ours} | JAX {self.theirs}"


def caught_as(error: BaseException) -> type[BaseException]:
    """Returns the first built-in class of an exception, which programs catch."""
    found: list[type[BaseException]] = [
        c for c in type(error).__mro__ if getattr(builtins, c.__name__, None) == c
    ]
    return found[0]


def told(error: BaseException) -> str:
    """Returns an exception's class and first line, and the last line if a callback raised it."""
    cls = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    first, *rest = str(error).strip().splitlines() or [""]
    last = f" … {rest[-1]:.300}" if rest and "Traceback" in first else ""
    return f"{cls}: {first:.300}{last}"


def compare(ours: Outcome, theirs: Outcome) -> list[Difference]:
    """Returns the differences, in the order of the steps; none after a step that raised.

    Consequences of other values of the call are not repeated.
    """
    found: list[Difference] = []
    mine, other = ours.error, theirs.error
    for step in theirs.steps:
        one, two = ours.steps.get(step), theirs.steps[step]
        if isinstance(one, dict) and isinstance(two, dict):
            known = any(d.what == "value" and d.step == "call" for d in found)
            new = _compare_leaves(step, one, two)
            found += [d for d in new if not (known and step == "then" and d.what == "value")]
    if mine and other:
        if not isinstance(mine[1], caught_as(other[1])):
            found.append(Difference("class", other[0], "", told(mine[1]), told(other[1])))
    elif mine:
        found.append(Difference("raises", mine[0], "", told(mine[1]), "returns"))
    elif other:
        found.append(Difference("accepts", other[0], "", "returns", told(other[1])))
    if not (mine or other):
        gone = Counter(t for t, a in zip(ours.types, ours.deleted, strict=True) if a)
        results = _types(ours)
        for i, (a, b) in enumerate(zip(ours.deleted, theirs.deleted, strict=True)):
            if a != b:
                mine_too = ours.types[i]
                of_its_type = results[mine_too] > (0 if a else gone[mine_too])
                said = f"{a}, and a result has its type" if of_its_type else str(a)
                found.append(Difference("deleted", "call", f"[{i}]", said, str(b)))
        if ours.traces != theirs.traces:
            found.append(Difference("traces", "call", "", str(ours.traces), str(theirs.traces)))
    return found


def _types(outcome: Outcome) -> Counter[str]:
    steps = (outcome.steps.get(name, {}) for name in ("call", "again"))
    return Counter(f"{leaf.dtype}{leaf.shape}" for step in steps for leaf in step.values())


def _compare_leaves(step: str, ours: dict[str, Any], theirs: dict[str, Any]) -> list[Difference]:
    if step == "input_shardings":
        return [
            Difference("input_shardings", step, path, _parts(ours.get(path)), _parts(theirs[path]))
            for path in theirs
            if ours.get(path) != theirs[path]
        ]
    if [*ours] != [*theirs]:
        return [Difference("structure", step, "", str([*ours]), str([*theirs]))]
    found = []
    for path, b in theirs.items():
        a: Leaf = ours[path]
        pairs = [
            ("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype), ("weak", a.weak, b.weak),
            ("committed", a.committed, b.committed), ("sharding", a.parts, b.parts),
            ("memory_kind", a.memory, b.memory),
        ]  # fmt: skip
        if a.kind != b.kind:  # an array has more properties than a number
            pairs = [("structure", a.kind, b.kind)]
        found += [Difference(w, step, path, str(x), str(y)) for w, x, y in pairs if x != y]
        if a.shape == b.shape and not _same_value(a.value, b.value):
            both = (a.value, b.value)
            found.append(Difference("value", step, path, *map(_shown, both), both))
    return found


def _parts(leaf: Leaf | None) -> str:
    return str(leaf and leaf.parts)


def _shown(value: Any) -> str:
    return " ".join(f"{value!r:.400}".split())


def _same_value(a: Any, b: Any) -> bool:
    if not isinstance(b, np.ndarray | np.generic) and not isinstance(a, np.ndarray | np.generic):
        return a is b or a == b or (a != a and b != b)
    return bool(np.all(agreeing(a, b)))


def agreeing(a: Any, b: Any, tolerance: float = 0) -> Any:
    """Returns for each element of two arrays of one shape whether it is the same in both.

    The default tolerance is the dtype's.
    """
    a, b = np.asarray(a), np.asarray(b)
    if b.dtype.kind not in "fcV" or a.dtype.kind not in "fcV":
        return a == b
    tolerance = tolerance or TOLERANCES.get(str(b.dtype), 1e-4)
    if b.dtype.kind == "V" or b.dtype == np.float16:
        a, b = a.astype(np.float32), b.astype(np.float32)
    finite = np.abs(b[np.isfinite(b)])
    scale = tolerance * float(max(1.0, finite.max(initial=0)))
    with np.errstate(all="ignore"):
        return np.isclose(a, b, rtol=tolerance, atol=scale, equal_nan=True)
