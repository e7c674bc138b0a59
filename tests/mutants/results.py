"""Makers of mutants whose programs return wrong results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.interface import CompileOptions, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, execute
from plugrt_sdk.loaded_executable import BackendLoadedExecutable
from plugrt_sdk.reading import read_module


def wrong_result(applies: Callable[[str, Program], Any], change: Callable[[Any], Any]) -> Faults:
    """Returns a mutant that changes the results of programs that a function selects.

    ``applies`` is called with the program's text; ``change`` with ``results[result][device]``.
    """

    def compile(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
        launch = NumpyBackend.compile(self, program, options)
        if not applies(str(read_module(program)), program):
            return launch
        return lambda *given: change(launch(*given))

    return Faults(backend={"compile": compile})


def each(change: Callable[[Array], Array]) -> Callable[[Any], Any]:
    """Returns a function that changes each array of a launch's results."""
    return lambda results: [[change(array) for array in shards] for shards in results]


def spoil(ulps: int, *, of_largest: bool = False) -> Callable[[Array], Array]:
    """Returns a function that changes the last element, of floats by a little more than allowed.

    The unit is the last place of the element, or of the largest one.
    """

    def spoil(array: Array) -> Array:
        found = array.copy()
        last = found.reshape(-1)[-1]
        if found.dtype == bool:
            found.reshape(-1)[-1] = not last
        elif found.dtype.kind in "iu":
            found.reshape(-1)[-1] = last ^ 1
        else:
            unit_of = np.max(np.abs(found)) if of_largest else last
            found.reshape(-1)[-1] = _further(last, found.dtype, 2 * ulps + 2, unit_of)
        return found

    return spoil


def _further(value: Any, dtype: Any, ulps: int, unit_of: Any) -> Any:
    info: Any = ml_dtypes.finfo(dtype)
    scale = max(abs(complex(unit_of)), float(info.tiny))
    return value + dtype.type(ulps * float(info.eps) * scale)


def accept(adapt: Callable[[BackendLoadedExecutable, list[Any]], list[Any]]) -> Faults:
    """Returns a mutant that converts arguments before they are checked."""

    def run(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
        return execute(self, adapt(self, list(arguments)), options)

    return Faults(loaded={"execute": run})


def spoil_largest(ulps: int) -> Callable[[Array], Array]:
    """Returns a function that changes the last element by the largest one, if there is any."""
    by_units = spoil(ulps)

    def spoil_largest(array: Array) -> Array:
        if not array.size or array.dtype.kind in "iub" or not ulps:
            return by_units(array) if array.size else array
        found = array.copy()
        found.reshape(-1)[-1] += array.dtype.type(np.max(np.abs(array)))
        return found

    return spoil_largest


def change_where(words: str, change: Callable[[Array], Array]) -> Faults:
    """Returns a mutant that changes the results of programs with all these words."""
    return wrong_result(lambda text, program: all(w in text for w in words.split()), each(change))
