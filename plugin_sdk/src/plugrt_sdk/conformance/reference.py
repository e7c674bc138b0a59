"""`Reference`: StableHLO's reference interpreter, in a child process.

The interpreter is jaxlib's ``stablehlo.eval_module``. It ends its process for operations that it
lacks, and for some others (division of an integer by zero); the next use starts another child. The
child ends when its standard input closes, and so with the process that started it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import weakref
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.testing.program_text import named_dtype

_IN_TWO_BYTES = "bfloat16"
"""The dtypes that the bindings accept as 16-bit integers, and cannot return."""


class Reference:
    """The interpreter; the first use starts it."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def evaluate(self, text: str, arguments: Sequence[Array]) -> list[Array] | None:
        """Returns the results of a program's ``main``; None if the interpreter cannot run it."""
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            pickle.dump((text, list(arguments)), child.stdin)
            child.stdin.flush()
            found: list[Array] | None = pickle.load(child.stdout)  # this object's own child
        except (EOFError, OSError, pickle.UnpicklingError):
            self.close()
            return None
        return found

    def _start(self) -> subprocess.Popen[bytes]:
        self._child = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import serve; serve()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
        self._end = weakref.finalize(self, _end, self._child)
        return self._child

    def close(self) -> None:
        """Ends the child. A second call does nothing."""
        if self._child is not None:
            self._child = None
            self._end()


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()


def serve() -> None:
    """Evaluates programs from standard input until it closes."""
    source = sys.stdin.buffer
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # native code may print to stdout
    while True:
        try:
            text, arguments = pickle.load(source)  # sent by the process that started this one
        except EOFError:
            return
        pickle.dump(_evaluate(text, arguments), answers)
        answers.flush()


def _evaluate(text: str, arguments: Sequence[Array]) -> list[Array] | None:
    from plugrt.stablehlo.bindings import MLIRError, hlo, ir
    from plugrt.stablehlo.modules import parse
    from plugrt.stablehlo.types import element_type

    if not hasattr(hlo, "eval_module"):
        return None
    module = parse(text)
    with module.context:
        dtypes = _plain_results(module)
        constants = [
            ir.DenseElementsAttr.get(_plain(a), type=element_type(a.dtype), shape=list(a.shape))
            for a in arguments
        ]
        try:
            results = hlo.eval_module(module, constants)
        except (MLIRError, ValueError):
            return None
        return _join([_array(r) for r in results], dtypes)


def _plain(array: Array) -> Array:
    return array.view(np.uint16) if array.dtype.name == _IN_TWO_BYTES else array


def _array(attribute: Any) -> Array:
    from plugrt.stablehlo.types import ir_type_to_tensor_type

    return np.array(attribute).reshape(ir_type_to_tensor_type(attribute.type).shape)


def _plain_results(module: Any) -> list[str]:
    """Gives ``main`` results of dtypes that the bindings have; returns the original dtypes."""
    from plugrt.stablehlo.bindings import hlo, ir
    from plugrt.stablehlo.regions import return_values, returned_values, terminator
    from plugrt.stablehlo.types import ir_type_to_tensor_type, tensor_type

    [main] = [op for op in module.body.operations if op.name.value == "main"]
    block = main.entry_block
    dtypes, values = [], []
    with ir.Location.unknown(), ir.InsertionPoint(terminator(block)):
        for value in returned_values(block):
            kind = ir_type_to_tensor_type(value.type)
            dtypes.append(kind.dtype.name)
            if kind.dtype.kind == "c":
                values += [hlo.real(value), hlo.imag(value)]
            elif kind.dtype.name == _IN_TWO_BYTES:
                bits = tensor_type(kind.shape, np.dtype(np.uint16))
                values.append(hlo.bitcast_convert(bits, value))
            else:
                values.append(value)
        return_values(block, values)
        function = ir.FunctionType.get(main.type.inputs, [value.type for value in values])
        main.attributes["function_type"] = ir.TypeAttr.get(function)
    return dtypes


def _join(arrays: Sequence[Array], dtypes: Sequence[str]) -> list[Array]:
    """Converts the results back to the dtypes from before `_plain_results`."""
    left, found = iter(arrays), []
    for name in dtypes:
        array = next(left)
        if "complex" in name:
            array = np.asarray(array + np.asarray(1j, name) * next(left))
        found.append(array.view(named_dtype(name)) if name == _IN_TWO_BYTES else array)
    return found
