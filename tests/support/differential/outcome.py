"""`run`: the outcome of each step of a case on one side."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from jax._src import dispatch

import plugrt
from support.differential.case import Case
from support.differential.script import (
    FUNCTIONS_OF_JAX,
    JAX_PRELUDE,
    PLUGRT_PRELUDE,
    PRELUDE,
    script,
)
from support.jax_oracle import jax

Parts = dict[int, tuple[tuple[int, int], ...]]
"""For each device's number its part of an array: start and end for each dimension."""


@dataclass(frozen=True)
class Leaf:
    """The visible properties of a result."""

    kind: str
    """``array``, or the name of the class."""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    weak: bool = False
    committed: bool = False
    parts: Parts | None = None
    memory: str = ""
    """The kind of its memory."""
    value: Any = field(default=None, compare=False)


@dataclass
class Outcome:
    """The outcome of a case: for each step that ran its results or the exception that ended it."""

    steps: dict[str, Any] = field(default_factory=dict)
    """For each step by name: leaves by path, or an exception."""
    deleted: tuple[bool | None, ...] = ()
    """For each argument of both calls whether it is gone; None if it is no array."""
    types: tuple[str, ...] = ()
    """Dtype and shape of each of these arguments; empty for other values than arrays."""
    traces: int = 0

    @property
    def error(self) -> tuple[str, BaseException] | None:
        """The step that raised, and its exception."""
        raised = [(name, e) for name, e in self.steps.items() if isinstance(e, BaseException)]
        return raised[0] if raised else None


@cache
def namespace(ours: bool, of_jax: bool) -> dict[str, Any]:
    """Returns the names that the program of a side begins with."""
    found: dict[str, Any] = {}
    text = PRELUDE + (PLUGRT_PRELUDE if ours else JAX_PRELUDE)
    exec(text + (FUNCTIONS_OF_JAX if of_jax else ""), found)
    return found


def run(case: Case, ours: bool) -> Outcome:
    """Runs a case with plugrt or with JAX."""
    names = dict(namespace(ours, case.form == "from_jax"))
    outcome = Outcome()
    settings = [f"enable_x64({case.x64})", *([case.setting] if case.setting else [])]
    # JAX prints when it looks for a NaN.
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        entered: list[Any] = []
        try:
            for text in settings:
                entered.append(eval(text, names))
                entered[-1].__enter__()
            _run_steps(case, names, ours, outcome)
        finally:
            for context in reversed(entered):
                context.__exit__(None, None, None)
    outcome.traces = len(names.get("traced", ()))
    arguments = [*names.get("args", ()), *names.get("others", ())]
    arrays = [x if _is_array(x, ours) else None for x in arguments]
    outcome.deleted = tuple(None if x is None else x.is_deleted() for x in arrays)
    outcome.types = tuple("" if x is None else f"{x.dtype}{x.shape}" for x in arrays)
    return outcome


_MADE = {"call": "r", "again": "again", "then": "s"}
"""Names that steps leave for the comparison."""
_STATED = {"in_avals": "call.in_avals[0]", "out_info": "call.out_info"}
"""Attributes of a compiled program: the types of its arguments and results."""


def _run_steps(case: Case, names: dict[str, Any], ours: bool, outcome: Outcome) -> None:
    for name, text in script(case):
        try:
            exec(text, names)
            if name == "input_shardings":
                args = [leaf for leaf in names["args"] if leaf is not None]
                outcome.steps[name] = _input_parts(names["inputs"], args)
            elif name in _STATED:
                outcome.steps[name] = dict(_stated(eval(_STATED[name], names), ""))
            elif name in _MADE:
                outcome.steps[name] = dict(_leaves(names[_MADE[name]], "", ours))
            else:
                outcome.steps[name] = {}
        except Exception as error:  # noqa: BLE001  # it is the outcome
            outcome.steps[name] = error.with_traceback(None)
            if "CpuCallback error" in str(error):  # otherwise JAX raises it again at exit
                dispatch.runtime_tokens.clear()
            return


def _is_array(x: Any, ours: bool) -> bool:
    return isinstance(x, plugrt.Array if ours else jax.Array)


def parts_of(sharding: Any, shape: tuple[int, ...]) -> Parts:
    """Returns each device's part of an array of that shape."""
    return {
        device.id: tuple(
            one.indices(size)[:2] if isinstance(one, slice) else (int(one), int(one) + 1)
            for one, size in zip(index, shape, strict=True)
        )
        for device, index in sharding.devices_indices_map(shape).items()
    }


def _input_parts(inputs: Any, args: list[Any]) -> dict[str, Any]:
    positional, _ = inputs
    return {
        f"[{i}]": None if sharding is None else Leaf("sharding", parts=parts_of(sharding, x.shape))
        for i, (sharding, x) in enumerate(zip(positional, args, strict=False))
        if hasattr(x, "shape")
    }


def _stated(value: Any, path: str) -> Iterator[tuple[str, Leaf]]:
    """Yields shapes and dtypes: other properties of structures differ between the libraries."""
    if isinstance(value, tuple | list | dict):
        for key, part in sorted(value.items()) if isinstance(value, dict) else enumerate(value):
            yield from _stated(part, f"{path}[{key!r}]")
    elif value is not None:
        yield path, Leaf("type", value.shape, str(value.dtype))


def _memory(sharding: Any) -> str:
    # None is the default kind in plugrt; tests/cpu/differential states that difference.
    return sharding.memory_kind or next(iter(sharding.device_set)).default_memory().kind


def _leaves(value: Any, path: str, ours: bool) -> Iterator[tuple[str, Leaf]]:
    """Yields the parts of a result, each with where it is in the result."""
    if type(value) in (tuple, list):
        yield f"{path} {type(value).__name__}", Leaf(str(len(value)))
        for i, part in enumerate(value):
            yield from _leaves(part, f"{path}[{i}]", ours)
    elif type(value) is dict:
        yield f"{path} dict", Leaf(str(sorted(value)))
        for key in sorted(value):
            yield from _leaves(value[key], f"{path}[{key!r}]", ours)
    elif _is_array(value, ours):
        yield path, Leaf(
            "array", value.shape, str(value.dtype), bool(value.weak_type), bool(value.committed),
            parts_of(value.sharding, value.shape), _memory(value.sharding), np.asarray(value),
        )  # fmt: skip
    elif isinstance(value, np.ndarray | np.generic):
        yield path, Leaf(type(value).__name__, value.shape, str(value.dtype), value=value)
    else:
        yield path, Leaf(type(value).__name__, value=value)
