"""Known differences from JAX: ``docs/data/jax_deviations.toml``, read and matched."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from support.differential.case import MESHES, Arg, Case
from support.differential.compare import TOLERANCES, Difference, agreeing
from support.differential.outcome import run
from support.differential.script import PRELUDE, host_text

PATH = Path(__file__).parents[3] / "docs/data/jax_deviations.toml"
KINDS = ("deviation", "fault")


@dataclass(frozen=True)
class Entry:
    """A class of differences: their kinds, their cases, and the reason."""

    id: str
    kind: str
    """``deviation``, which stays, or ``fault``, which an issue repairs."""
    what: tuple[str, ...]
    """The kinds of `Difference` that it covers."""
    when: str
    """A Python expression of ``case``, ``difference`` and the functions of `names`."""
    jax: str
    plugrt: str
    reason: str
    issue: int
    """The issue that repairs a fault; 0 for a deviation."""
    example: Case
    """A case that shows it."""
    topic: str = ""
    """The topic of an entry that users meet: docs/jax-users.md lists it with tests' statements."""

    def covers(self, case: Case, difference: Difference) -> bool:
        """Whether a difference of a case is of this class."""
        return difference.what in self.what and bool(
            eval(_compiled(self.when), names(case, difference))
        )


@cache
def _compiled(text: str) -> CodeType:
    return compile(f"({text})", "<when>", "eval")


def names(case: Case, difference: Difference) -> dict[str, Any]:
    """Returns the variables and functions that a condition of a row may use."""
    body, args = case.body, case.all_args
    read = re.sub(r"\b[xyz]\.(shape|dtype|ndim|size)\b|_like\([xyz]", "", body)
    return {
        "np": np,
        "case": case,
        "difference": difference,
        "args": args,
        "body": body,
        "ours": difference.ours,
        "theirs": difference.theirs,
        "option": case.option,
        "has": lambda *parts: any(part in body for part in parts),
        "any_arg": lambda **wanted: any(
            all(getattr(a, name) == value for name, value in wanted.items()) for a in args
        ),
        "on": devices,
        "default": frozenset(map(int, re.findall(r"devices\[(\d)", case.setting) or [0])),
        "places": [placed_on(a) for a in args if a.place is not None],
        "only": lambda where: differs_only(case, difference, where),
        "whole": whole,
        "unused": any(not re.search(rf"\b{name}\b", read) for name in "xyz"[: len(case.args)]),
        "refused_if_checked": partial(refused_if_checked, case),
        "meshes_in": partial(meshes_in, case),
        "home": home(case, difference),
        "moved": moved(case, difference),
        "offered_before": offered_before(case, difference),
        "outside": outside,
        "imaginary": any("complex" in a.dtype and np.any(is_imaginary(operand(a))) for a in args),
        "rounded": rounded(case, difference),
        "in_then": difference.step == "then",
    }


def devices(parts: str) -> frozenset[int]:
    """Returns the devices in the text of a difference of shardings; none for another text."""
    return frozenset(ast.literal_eval(parts)) if parts.startswith("{") else frozenset()


def placed_on(arg: Arg) -> frozenset[int]:
    """Returns the numbers of the devices where an argument was put."""
    if isinstance(arg.place, int):
        return frozenset([arg.place])
    return frozenset(MESHES[arg.place[0]][2] if arg.place else ())


def differs_only(case: Case, difference: Difference, where: Callable[..., Any]) -> bool:
    """Whether values differ only where ``where`` holds for the operands.

    For functions of ``x``, or of ``x`` and ``y``, whose operands broadcast to the result; each
    replica of ``pmap`` has its own.
    """
    if difference.values is None or difference.step not in ("call", "again"):
        return False
    one, two = map(np.asarray, difference.values)
    given = [operand(a) for a in (case.args if difference.step == "call" else case.again)]
    if case.form == "pmap":
        given = [x.reshape(x.shape + (1,) * (one.ndim - x.ndim * bool(x.ndim))) for x in given]
    try:
        allowed = np.broadcast_to(where(*given), one.shape)
    except (TypeError, ValueError):  # ``where`` is for other operands or shapes
        return False
    return bool(np.all(agreeing(one, two) | allowed))


@cache
def refused_if_checked(case: Case) -> bool:
    """Whether JAX refuses a `shard_map` with ``check_vma``: its results differ among devices."""
    options = tuple(o for o in case.options if o[0] != "check_vma")
    error = run(replace(case, options=options, then=""), ours=False).error
    return error is not None and "statically inferred" in str(error[1])


def meshes_in(case: Case, option: str) -> list[frozenset[int]]:
    """Returns the devices of the meshes that an option names, also one within the function."""
    text = ", ".join([*(f"{name}={value}" for name, value in case.options), case.body])
    given = text.partition(option)[2]
    return [frozenset(MESHES[name][2]) for name in re.findall(r"named\('([^']+)'", given)]


def home(case: Case, difference: Difference) -> str:
    """Returns the device of the argument in a difference, as an expression; empty for several."""
    if difference.what != "deleted":
        return ""
    arg = case.all_args[int(difference.path.strip("[]"))]
    found = re.findall(r"devices\[\d", case.setting)
    where = placed_on(arg) if arg.place is not None else {int(found[0][-1]) if found else 0}
    return f"devices[{next(iter(where))}]" if len(where) == 1 else ""


def moved(case: Case, difference: Difference) -> bool:
    """Whether the argument in a difference, or the first, is uncommitted, and others committed."""
    named = int(difference.path.strip("[]")) if difference.what == "deleted" else 0
    text = ", ".join([case.body, *(value for _, value in case.options)])
    placed = ("named(", "SingleDeviceSharding", "pmap", "device=", "shard_map")
    return case.all_args[named].place is None and (
        any(a.place is not None for a in case.all_args) or any(part in text for part in placed)
    )


def offered_before(case: Case, difference: Difference) -> bool:
    """Whether an argument before the one in the difference has its size, and another itemsize."""
    if difference.what != "deleted":
        return False
    named = int(difference.path.strip("[]"))
    first = len(case.args) * (named >= len(case.args))  # the first argument of its call
    *before, one = map(operand, case.all_args[first : named + 1])
    return any(x.size == one.size and x.itemsize != one.itemsize for x in before)


def rounded(case: Case, difference: Difference) -> bool:
    """Whether values differ by no more than the rounding of the 16-bit floats in the arguments."""
    names = {a.dtype for a in case.all_args} & {"float16", "bfloat16"}
    if not names or difference.values is None:
        return False
    return bool(np.all(agreeing(*difference.values, max(TOLERANCES[name] for name in names))))


def outside(x: Any, y: Any) -> Any:
    """Returns for each integer of ``y`` whether the dtype of ``x`` cannot hold it."""
    if not (x.dtype.kind in "iu" and y.dtype.kind in "iu"):
        return np.asarray(False)
    limits = np.iinfo(x.dtype)
    return (y < limits.min) | (y > limits.max)


def is_imaginary(x: Any) -> Any:
    """Returns for each element whether only its imaginary part is not zero."""
    return (x.real == 0) & (x.imag != 0)


def whole(*operands: Any) -> bool:
    """Whether operands are integers or booleans."""
    return {x.dtype.kind for x in operands} <= set("biu")


def operand(arg: Arg) -> Any:
    """Returns an argument's value, as NumPy data."""
    return np.asarray(eval(host_text(arg), _values()))


@cache
def _values() -> dict[str, Any]:
    found: dict[str, Any] = {"m": None}
    exec(PRELUDE, found)
    return found


@cache
def entries() -> tuple[Entry, ...]:
    """Returns all entries; `ValueError` for one that is incomplete or listed twice."""
    found: dict[str, Entry] = {}
    for raw in tomllib.loads(PATH.read_text(encoding="utf-8"))["entry"]:
        example = eval(raw.pop("example"), {"Case": Case, "Arg": Arg})
        entry = Entry(**{"issue": 0, **raw, "what": tuple(raw["what"]), "example": example})
        if (
            entry.id in found
            or entry.kind not in KINDS
            or (entry.kind == "fault") != bool(entry.issue)
        ):
            raise ValueError(
                f"{PATH.name}: {entry.id} is listed twice, or its kind or issue is wrong"
            )
        found[entry.id] = entry
    return tuple(found.values())


def entry_of(case: Case, difference: Difference) -> Entry | None:
    """Returns the first entry that covers a difference."""
    return next((e for e in entries() if e.covers(case, difference)), None)


def unknown(case: Case, differences: Iterable[Difference]) -> list[Difference]:
    """Returns the differences that no entry covers."""
    return [d for d in differences if entry_of(case, d) is None]
