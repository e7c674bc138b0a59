"""Functions of the host in programs: Python callbacks, and handlers of custom calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy.typing as npt

HOST_CALLBACK = "plugrt_host_callback"
"""The target of the custom calls that call Python; see `Program.callbacks`."""


HostCallback: TypeAlias = Callable[[Sequence[npt.NDArray[Any]]], Sequence[npt.NDArray[Any]]]
"""Gets the arguments, views that are valid during the call, and returns the results, row-major
arrays of the custom call's types. What it raises is a `PjrtError`, the error of the launch."""


Handler: TypeAlias = Callable[
    [Sequence[npt.NDArray[Any]], Sequence[npt.NDArray[Any]], Mapping[str, Any]], None
]
"""Gets (arguments, results, attributes): read-only views of the arguments, views of the results
to be filled in, and the attributes of the program's ``backend_config``. Tokens are left out."""


@dataclass(frozen=True)
class HandlerStages:
    """A handler in C by stage of XLA's FFI: addresses of functions of type ``XLA_FFI_Handler``.

    ``instantiate`` is called once for each custom call of an executable, with its attributes alone,
    and may make a state that the later stages find; ``prepare``, ``initialize`` and ``execute`` are
    called in this order at each launch. XLA's CPU backends call neither of the two in between.
    """

    execute: int
    instantiate: int | None = None
    prepare: int | None = None
    initialize: int | None = None
