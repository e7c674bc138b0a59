"""Programs that call Python, as jaxlib takes them: its own custom call, and the functions."""

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
"""Which XLA's partitioner leaves on each device, with the parts that are there."""


def bind_callbacks(
    code: bytes, name: str, callbacks: Mapping[int, HostCallback] | Handler
) -> tuple[ir.Module, list[Callable[..., Any]]]:
    """Returns a program for ``compile_and_load``, and the ``host_callbacks`` that go with it.

    ``callbacks`` are the program's functions, or another host's handler, which calls them.
    jaxlib numbers the functions by their place in that list, which its executable keeps. It takes
    them with a module that is an object, and leaves them out with one that is text.
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
    """Returns the function of a number as a handler calls it, with the results' memory."""
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
    """Returns the function as jaxlib calls it: the token of an ordered call is a None.

    jaxlib makes a text of its exception; for an interrupt in plugrt's own functions, too.
    """

    def call(*arguments: npt.NDArray[Any] | None) -> tuple[Any, ...]:
        launch = this_thread.launch  # not that of the function
        if arguments and arguments[0] is None:
            results = (None, *callback(arguments[1:]))  # type: ignore[arg-type]
        else:
            results = tuple(callback(arguments))  # type: ignore[arg-type]
        this_thread.called = launch
        return results

    title = str(getattr(callback, "title", callback))
    return catching(call, lambda error, *_: as_failure(title, error))
