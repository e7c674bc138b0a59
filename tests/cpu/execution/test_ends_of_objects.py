"""Objects that a call makes and drops end without Python code.

A signal handler may raise in ``__del__`` or in the callback of a weak reference, where Python
discards exceptions ("Exception ignored in"): earlier, time-outs were lost there.
"""

from __future__ import annotations

import gc
import itertools
import pickle
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import lax
from support.native_core import IN_C

pytestmark = pytest.mark.skipif(not IN_C, reason="without the core, buffers end in Python")

numbers = itertools.count(2)
host = np.ones((4, 8), np.float32)


def divided() -> Any:
    mesh = plugrt.make_mesh((4,), ("i",), devices=plugrt.devices()[:4])
    rows = plugrt.sharding.PartitionSpec("i")
    return plugrt.device_put(host, plugrt.sharding.NamedSharding(mesh, rows))


def call_new(x: Any) -> Any:
    """Traces, compiles and drops a new function, with a constant that no other has."""
    number = float(next(numbers))
    return plugrt.jit(lambda v: v * number)(x)


def traced_with_x64(x: Any) -> Any:
    with plugrt.config.override(enable_x64=True):
        return call_new(x)


def call_with_constant(constant: Any, x: Any) -> Any:
    return plugrt.jit(lambda v: v + constant)(x)


def callback(x: Any) -> Any:
    return plugrt.pure_callback(lambda v: v, x, x)


def saved_and_loaded(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


kept = plugrt.jit(lambda x: {"sum": x + x, "first": x[0]})
donating = plugrt.jit(lambda x: x + 1, donate_argnums=0)
over_devices = plugrt.pmap(lambda x: lax.psum(x, "i"), axis_name="i", devices=plugrt.devices()[:4])
calling = plugrt.jit(lambda x: plugrt.pure_callback(np.sin, x, x))
CALLS: dict[str, Callable[[Any], Any]] = {
    "put": lambda x: plugrt.device_put(host),
    "put beside others": lambda x: plugrt.device_put({"a": host, "b": (1.5, host[0])}),
    "put divided": lambda x: divided(),
    "copy": lambda x: plugrt.device_put(x, plugrt.devices()[1]),
    "read": lambda x: np.asarray(kept(x)["first"]),
    "list": lambda x: list(x),
    "number": lambda x: float(x.sum()),
    "pickle": saved_and_loaded,
    "delete": lambda x: plugrt.device_put(host).delete(),
    "launch": kept,
    "launch of host data": lambda x: kept(host),
    "launch divided": lambda x: kept(divided()),
    "donate": lambda x: donating(plugrt.device_put(host)),
    "operator": lambda x: x + x,
    "index": lambda x: x[1, 2:4],
    "update": lambda x: x.at[1].set(0),
    "pmap": lambda x: np.asarray(over_devices(host)),
    "callback": lambda x: np.asarray(calling(x)),
    "lower": lambda x: plugrt.jit(lambda v: v * 2).lower(x),
    "compile": call_new,
    "compile with x64": traced_with_x64,
    "compile ahead of time": lambda x: plugrt.jit(lambda v: v * 2).lower(x).compile()(x),
    "eval_shape": lambda x: plugrt.jit(lambda v: v @ v.T).eval_shape(x),
    "compile with a constant": lambda x: call_with_constant(np.full(8, next(numbers), "f4"), x),
    "compile a callback": lambda x: np.asarray(plugrt.jit(lambda v: callback(v))(x)),
    "eager control flow": lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x),
    "collect": lambda x: (kept(x), gc.collect()),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_python_code_runs_where_objects_end(name: str) -> None:
    call, x = CALLS[name], plugrt.device_put(host)
    for _ in range(2):
        call(x)
    gc.collect()
    found = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name in ("__del__", "remove", "_remove"):
            found.add(f"{code.co_filename}:{code.co_firstlineno} {code.co_name}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for _ in range(3):
            call(x)
    finally:
        sys.setprofile(before)
    assert not found
