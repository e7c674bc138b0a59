"""Calls of plugrt, interrupted at each place where Python calls signal handlers.

``sweep:USE:STEP`` tests every ``STEP``-th place of a use, in one process. After each it checks the
state of the thread, and makes the next call. ``first:USE:STEP`` does so with the first call of a
process, in a fork for each place. The exit code is 0 if there is no failure.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import plugrt
from plugrt.lifetime.main_interpreter import current_frames
from plugrt.native.native_core import new_lock
from support.interruption import EntryInterruption

Use = Callable[[], object]
P = plugrt.sharding.PartitionSpec
ONES = np.ones((2, 4), np.float32)


def put() -> object:
    return np.asarray(plugrt.device_put(ONES) + 1)


def read() -> object:
    x = plugrt.jit(lambda v: v + 1)(ONES)
    return np.asarray(x), np.array(x.tolist()), np.array(float(x[0, 0])), np.array(list(x))


def traced(x: Any) -> Any:
    inner = plugrt.jit(lambda w: w * 2)
    return plugrt.lax.cond(x[0, 0] > 0, lambda v: inner(v), lambda v: v, x)


def lower() -> object:
    return plugrt.jit(lambda v: traced(v)).lower(ONES).as_text()


def jit() -> object:
    return np.asarray(plugrt.jit(lambda v, *, k: {"a": traced(v), "b": v + k})(ONES, k=2.0)["a"])


def compiled() -> object:
    return np.asarray(plugrt.jit(lambda v: v - 1).lower(ONES).compile()(ONES))


def eager() -> object:
    x = plugrt.device_put(ONES)
    return np.asarray((x * 2 + plugrt.array_api.sin(x))[0].sum())


def pmap() -> object:
    return np.asarray(plugrt.pmap(lambda v: plugrt.lax.psum(v, "i"), "i")(ONES))


def by_operation() -> object:
    return np.asarray(plugrt.pmap(lambda v: plugrt.lax.psum(v, "i"), "i")(ONES))


def sharded() -> object:
    mesh = plugrt.make_mesh((2,), ("i",))
    x = plugrt.device_put(ONES, plugrt.sharding.NamedSharding(mesh, P("i")))
    return np.asarray(plugrt.jit(lambda v: v @ v.T)(x))


def shard_map() -> object:
    mesh = plugrt.make_mesh((2,), ("i",))
    summed = plugrt.shard_map(
        lambda v: v + plugrt.lax.psum(v, "i"), mesh=mesh, in_specs=P("i"), out_specs=P("i")
    )
    return np.asarray(plugrt.jit(summed)(ONES))


def in_mesh() -> object:
    with plugrt.make_mesh((2,), ("i",)):
        x = plugrt.jit(lambda v: v + 1, in_shardings=P("i"))(ONES)
    with plugrt.sharding.use_mesh(plugrt.make_mesh((2,), ("j",))):
        return np.asarray(x), np.asarray(plugrt.jit(lambda v: v + 1)(ONES))


def scopes() -> object:
    mesh = plugrt.make_mesh((2,), ("i",))
    use, device = plugrt.sharding.use_mesh, plugrt.default_device
    with mesh, use(mesh), plugrt.set_mesh(mesh), device(plugrt.devices()[1]), plugrt.debug_nans():
        found = plugrt.sharding.get_mesh().axis_names
    return found, plugrt.sharding.get_mesh().axis_names


def frames() -> object:
    return sorted(current_frames())


def callback() -> object:
    shape = plugrt.ShapeDtypeStruct((2, 4), np.float32)
    return np.asarray(plugrt.jit(lambda v: plugrt.pure_callback(np.sin, shape, v))(ONES))


USES: dict[str, Use] = {
    use.__name__: use
    for use in (
        *(put, read, lower, jit, compiled, eager, pmap, by_operation, sharded, shard_map),
        *(in_mesh, scopes, frames, callback),
    )
}

WARM = plugrt.jit(lambda v: v + 1)
_LOSES = "_get_module_lock.<locals>.cb"
"""Python calls this function when an import lock ends, and discards its exceptions."""
EXPECTED: dict[str, Use] = {
    "put": lambda: ONES + 1,
    "jit": lambda: 2 * ONES,
    "pmap": lambda: 2 * ONES,
    "sharded": lambda: ONES @ ONES.T,
}
"""The uses whose first calls are interrupted."""
_LOCKS = tuple({type(threading.Lock()), type(threading.RLock()), type(new_lock())})


class State:
    """The state of the thread and of plugrt's locks, which a call must not change."""

    def __init__(self) -> None:
        modules = [module for name, module in [*sys.modules.items()] if name.startswith("plugrt")]
        self._locals = {
            f"{module.__name__}.{name}": value
            for module in modules
            for name, value in [*vars(module).items()]
            if isinstance(value, threading.local) and name != "this_thread"  # the last launch
        }
        self._locks = {
            id(lock): (lock, holder)
            for holder in gc.get_objects()
            for lock in gc.get_referents(holder)
            if isinstance(lock, _LOCKS) and not _is_held(lock)
        }
        self.before = self.now()

    def now(self) -> dict[str, Any]:
        from plugrt.stablehlo.bindings import ir

        state = {name: dict(vars(value)) for name, value in self._locals.items()}
        here = ir.Context.current, ir.Location.current
        held = [str(holder)[:300] for lock, holder in self._locks.values() if _is_held(lock)]
        config = plugrt.config.token()
        return {
            **state, "MLIR": here, "collects": gc.isenabled(), "locks": held, "settings": config,
        }  # fmt: skip

    def changes(self) -> dict[str, Any]:
        now = self.now()
        return {k: (self.before.get(k), v) for k, v in now.items() if self.before.get(k) != v}


def _is_held(lock: Any) -> bool:
    return "count=0" not in repr(lock) if "count=" in repr(lock) else " locked " in repr(lock)


def _equal(result: object, expected: object) -> bool:
    if isinstance(expected, np.ndarray):
        return np.array_equal(result, expected)  # type: ignore[arg-type]
    if isinstance(expected, (list, tuple)):
        return all(map(_equal, result, expected))  # type: ignore[call-overload]
    return result == expected


_kept: list[BaseException] = []
"""The last exception: its traceback keeps frames alive, like ``sys.last_value`` in a notebook."""


def interrupt(use: Use, place: int) -> tuple[str | None, str]:
    """Interrupts ``use`` at a place; returns the place's name (None: none) and the exception."""
    _kept.clear()
    interruption, came = EntryInterruption(place), "nothing"
    sys.setprofile(interruption)
    try:
        use()
    except BaseException as error:  # noqa: BLE001 - it is compared
        came = repr(error)
        _kept.append(error)
    sys.setprofile(None)
    return interruption.place, came


def look_after(use: Use, expected: object, state: State | None, where: str, came: str) -> str:
    """Returns the faults after an interrupt of the use; an empty text if there are none."""
    if came != "KeyboardInterrupt()" and not (came == "nothing" and _LOSES in where):
        return f"{came} came"
    changes = state.changes() if state else {}
    if changes:
        gc.enable()
        return repr(changes)
    try:
        results = use(), np.asarray(WARM(ONES))
    except BaseException:  # noqa: BLE001 - it is reported
        return f"the next call: {traceback.format_exc()[-2500:]}"
    return "" if _equal(results, expected) else f"the next call gives {results}"


def sweep(name: str, step: int) -> bool:
    """Interrupts the use at every ``step``-th place; returns whether no fault followed."""
    use = USES[name]
    plugrt.config.update("disable_jit", use is by_operation)
    expected = use(), np.asarray(WARM(ONES))
    use()
    state, place, wrong = State(), 0, 0
    while True:
        faulthandler.dump_traceback_later(100, exit=True)
        where, came = interrupt(use, place)
        if where is None:
            break
        if problem := look_after(use, expected, state, where, came):
            print(f"{name}, place {place}, {where}: {problem}", flush=True)
            state, wrong = State(), wrong + 1
        place += step
    faulthandler.cancel_dump_traceback_later()
    print(f"{name}: {place // step} of {place} places, {wrong} wrong", flush=True)
    return not wrong


def first(name: str, step: int) -> bool:
    """Like `sweep`, for the first call in a process: each place has its own child."""
    use = USES[name]
    place, wrong = 0, 0
    # jaxlib imports JAX to read an array on several devices, and discards exceptions there.
    sys.modules["jax"] = None  # type: ignore[assignment]
    while True:
        read, write = os.pipe()
        if not (child := os.fork()):
            os.dup2(write, 1)
            os.dup2(write, 2)
            faulthandler.dump_traceback_later(100, exit=True)
            where, came = interrupt(use, place)
            if where is None:
                sys.exit(3)
            problem = look_after(use, (EXPECTED[name](), ONES + 1), None, where, came)
            sys.exit(f"{name} first, place {place}, {where}: {problem}" if problem else 0)
        os.close(write)
        with open(read) as said:
            text = said.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 3:
            break
        if code or (text and _LOSES not in text):
            print(f"{name} first, place {place}: exit code {code}\n{text}", flush=True)
            wrong += 1
        place += step
    print(f"{name} first: {place // step} of {place} places, {wrong} wrong", flush=True)
    return not wrong


def main(*uses: str) -> int:
    ran = []
    for use in uses:
        kind, name, step = use.split(":")
        ran.append({"sweep": sweep, "first": first}[kind](name, int(step)))
    return int(not all(ran))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
