"""`make_functions`: jitted functions of each form of argument, result and fault."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import plugrt
from plugrt import Array, jit, lax
from plugrt import array_api as xp
from plugrt.interface import Device


class Mine(Exception):
    """Raised by functions that are traced, and by callbacks."""


def _fail(*_: Any) -> Any:
    raise Mine("as it shall")


def _forms(*args: Any, n: Any = 1, how: Any = None, **more: Any) -> Any:
    total = functools.reduce(lambda a, b: a + b, plugrt.tree.leaves((args, more)), 0)
    if how == "same":
        return {"same": args, "more": more}
    if how == "pair":
        return Pair(total, [Pair(None, total)])
    if how == "node":
        return Node([total, Record(total - 1, "made", None)], 3)
    return {"sum": total * n, "more": [(total - 1, None), collections.OrderedDict(o=total)]}


class Pair(NamedTuple):
    """Iterates over other values than its items, which are the parts of the pytree."""

    a: Any
    b: Any

    def __iter__(self) -> Any:
        return iter(())


@dataclass
class Record:
    """A registered dataclass."""

    a: Any
    kind: Any
    b: Any


plugrt.tree.register_dataclass(Record, ["b", "a"], ["kind"])


class Node:
    """A container that is registered with functions, and opened in one of several ways."""

    def __init__(self, parts: Any, kind: Any, way: str = "tuple") -> None:
        self.parts, self.kind, self.way = parts, kind, way

    def flatten(self) -> Any:
        if self.way == "raises":
            raise Mine(f"a node of kind {self.kind}")
        if self.way == "raises TypeError":
            raise TypeError(f"a node of kind {self.kind}")
        if self.way == "wrong":
            return self.parts
        parts = self.parts if self.way == "own list" else tuple(self.parts)
        parts = (part for part in parts) if self.way == "generator" else parts
        if self.way == "entries":
            return parts, (self.kind, self.way), tuple(range(len(self.parts)))
        return parts, (self.kind, self.way)


plugrt.tree.register_node(Node, Node.flatten, lambda aux, parts: Node([*parts], *aux))

WAYS = [*["tuple", "own list"] * 4, "generator", "entries", "raises", "raises TypeError", "wrong"]


class Three(tuple[Any, ...]):
    """No pytree, though a tuple."""


class Scale:
    """Has jitted methods."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @functools.partial(jit, static_argnums=0)
    def times(self, x: Any) -> Any:
        return x * self.factor


def make_functions(devices: list[Device], notes: list[str]) -> dict[str, Callable[..., Any]]:
    """Returns functions by their names; callbacks write into ``notes``."""
    closed = plugrt.device_put(np.arange(4, dtype=np.float32), devices[0])
    scale = Scale(3.0)
    inner = jit(lambda x: x * 2)

    def keywords(a: Any, b: Any = 2, *, c: Any = None) -> Any:
        return a + b if c is None else a + b * c

    functions: dict[str, Callable[..., Any]] = {
        "add": jit(lambda a, b: a + b),
        "double": jit(lambda a: a * 2),
        "pair": jit(lambda a, b: (a - b, a)),
        "listed": jit(lambda a: [a + 1, a * a]),
        "named": jit(lambda a, b: {"y": a + b, "x": a}),
        "two": jit(lambda a, b: (a + b, a - b)),
        "by_name": jit(lambda a, b: {"sum": a + b, "less": a < b}),
        "kinds": jit(lambda a, b: [a + b, a < b, a * b]),
        "same": jit(lambda a: a),
        "swap": jit(lambda a, b: (b, a)),
        "nothing": jit(lambda a: None),
        "constant": jit(lambda a: 3.0),
        "mixed": jit(lambda a: (a + 1, None, 2, [a])),
        "unused": jit(lambda a, b: a + 1),
        "kept": jit(lambda a, b: a + 1, keep_unused=True),
        "static": jit(lambda a, n: a * n, static_argnums=1),
        "static_name": jit(lambda a, n=1: a * n, static_argnames="n"),
        "shown": jit(lambda a, n: {f"{type(n).__name__} {n!r}": a + 1}, static_argnums=1),
        "keywords": jit(keywords),
        "optional": jit(lambda a, b: (a, 1) if b is None else (b, a if a is None else a + b)),
        "donate": jit(lambda a, b: a + b, donate_argnums=0),
        "donate_both": jit(lambda a, b: (a + b, a - b), donate_argnums=(0, 1)),
        "donate_name": jit(lambda a, b: a - b, donate_argnames="b"),
        "donate_dict": jit(lambda a, b: {"y": a * b, "x": b}, donate_argnums=0),
        "donate_beside": jit(lambda a, b=None: {"y": a + 1, "x": b}, donate_argnums=0),
        "forms": jit(_forms, static_argnames=("n", "how")),
        "tree": jit(lambda t: plugrt.tree.map(lambda x: x + 1, t)),
        "sum": jit(lambda *xs: functools.reduce(lambda a, b: a + b, xs)),
        "log": jit(lambda a: xp.log(a - 1)),
        "divide": jit(lambda a, b: a / b),
        "branch": jit(lambda a: lax.cond(xp.sum(a) > 1, lambda: a, lambda: -a)),
        "fails": jit(_fail),
        "asks": jit(lambda a: a if xp.sum(a) > 0 else -a),
        "nested": jit(lambda a, b: inner(a) + inner(b)),
        "closed": jit(lambda a: a + closed),
        "method": scale.times,
        "not_jitted": lambda a, b: a * b - a,
    }
    four = np.ones(4, np.float32)
    functions["compiled"] = jit(lambda a, b: (a - b, a)).lower(four, four).compile()
    summed: Any = jit(_forms).lower({"b": four, "a": [four]}, four, k=four).compile()
    functions["compiled_forms"] = lambda a, b: summed({"b": a, "a": [b]}, b, k=a)
    if devices[0].client.capabilities.host_callbacks:
        functions |= _with_callbacks(notes)
    if len(devices) > 1:
        functions |= _of_several(devices)
    return functions


def _with_callbacks(notes: list[str]) -> dict[str, Callable[..., Any]]:
    def negate(x: Any) -> Any:
        notes.append(f"negate {np.asarray(x).dtype}")
        return -np.asarray(x)

    def note(x: Any) -> None:
        notes.append(f"note {np.asarray(x).shape}")

    def like(a: Any) -> Any:
        return plugrt.ShapeDtypeStruct(a.shape, a.dtype)

    def noted(a: Any) -> Any:
        plugrt.debug.callback(note, a)
        return a + 1

    return {
        "callback": jit(lambda a: plugrt.pure_callback(negate, like(a), a)),
        "failing": jit(lambda a: plugrt.pure_callback(_fail, like(a), a)),
        "noted": jit(noted),
    }


def _of_several(devices: list[Device]) -> dict[str, Callable[..., Any]]:
    two = devices[:2]
    mesh = plugrt.sharding.Mesh(np.array(two), ("x",))
    rows = plugrt.sharding.NamedSharding(mesh, plugrt.sharding.PartitionSpec("x"))

    def divided(a: Any) -> Array:
        return plugrt.device_put(a, rows)

    meshed = jit(lambda a: a * 2 + 1)
    return {
        "elsewhere": jit(lambda a, b: a + b, device=devices[1]),
        "sharded": jit(lambda a: a + 1, in_shardings=rows, out_shardings=rows),
        "meshed": lambda a: meshed(divided(a)),
        "pmap": plugrt.pmap(lambda a: a + lax.psum(a, "i"), axis_name="i", devices=two),
        "pmap_donate": plugrt.pmap(lambda a: a + 1, donate_argnums=0, devices=two),
    }
