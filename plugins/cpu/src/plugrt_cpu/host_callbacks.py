"""Prepares programs that call Python for jaxlib: its own custom call, and the functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.callbacks.host_callbacks import is_partitioned
from plugrt.interface import Handler, HostCallback
from plugrt.lifetime.callback_exits import as_failure
from plugrt.native.native_core import catching
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.callback_order import callback_number, host_callbacks
from plugrt.stablehlo.modules import parse
from plugrt.stablehlo.types import ir_type_to_tensor_type
from plugrt_cpu.calls_within import this_thread

_TARGET = "xla_ffi_python_cpu_callback"
_PARTITIONED = "xla_ffi_partitioned_python_cpu_callback"
"""XLA's partitioner keeps this call on each device, with the local parts."""


def bind_callbacks(
    code: bytes, name: str, callbacks: Mapping[int, HostCallback] | Handler
) -> tuple[ir.Module, list[Callable[..., Any]]]:
    """Returns a program for ``compile_and_load``, and its ``host_callbacks``.

    ``callbacks`` are the program's functions, or another host's handler, which calls them. jaxlib
    numbers the functions by their position in that list, which its executable keeps. It accepts
    them with a module object, and ignores them with a module as text.
    """
    module = parse(code, name)
    called: list[HostCallback] = []
    with module.context:
        index = ir.IntegerType.get_unsigned(64)
        for call in host_callbacks(module):
            number = callback_number(call)
            place = ir.IntegerAttr.get(index, len(called))
            called.append(
                callbacks[number]
                if isinstance(callbacks, Mapping)
                else _calling(callbacks, number, call)
            )
            target = _PARTITIONED if is_partitioned(called[-1]) else _TARGET
            call.attributes["call_target_name"] = ir.StringAttr.get(target)
            call.attributes["backend_config"] = ir.DictAttr.get({"index": place})
    return module, [_without_token(callback) for callback in called]


def _calling(handler: Handler, number: int, call: ir.Operation) -> HostCallback:
    """Returns a function that calls the handler with a number and the results' memory."""
    types = [
        ir_type_to_tensor_type(result.type)
        for result in call.results
        if str(result.type) != "!stablehlo.token"  # of an ordered call
    ]
    attributes = {"index": np.uint64(number)}

    def run(arguments: Sequence[npt.NDArray[Any]]) -> Sequence[npt.NDArray[Any]]:
        results = [np.empty(t.shape, t.dtype) for t in types]
        handler(arguments, results, attributes)
        return results

    return run


def _without_token(callback: HostCallback) -> Callable[..., tuple[Any, ...]]:
    """Returns the function for jaxlib: the token of an ordered call is a None.

    jaxlib converts its exception to text, also for an interrupt in plugrt's own functions.
    """

    def call(*arguments: npt.NDArray[Any] | None) -> tuple[Any, ...]:
        launch = this_thread.launch  # unlike the function's exception
        if arguments and arguments[0] is None:
            results = (None, *callback(arguments[1:]))  # type: ignore[arg-type]
        else:
            results = tuple(callback(arguments))  # type: ignore[arg-type]
        this_thread.called = launch
        return results

    title = str(getattr(callback, "title", callback))
    return catching(call, lambda error, *_: as_failure(title, error))
