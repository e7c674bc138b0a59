"""`ArrayBase`: what an array holds, in slots of Python's or in the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrt.native.native_core import core


class PythonArray:
    """The slots of an `Array`."""

    # `_extra` holds the host copy, after deletion a `Deletion`. It is None at first, since to ask
    # for a slot that is not set takes as long as to set forty.
    __slots__ = ("_extra", "_shards", "_signature")

    # What launches take and return: `Shards`, or a backend's own object in their place (see
    # `LoadedExecutable.launcher`); `Array._live` returns the `Shards` in either case.
    _shards: Any
    _signature: Any
    _extra: Any


ArrayBase = PythonArray
if core is not None and not TYPE_CHECKING:
    ArrayBase = core.Array
"""The first base of `plugrt.execution.arrays.array.Array`; the core's has the same attributes."""
