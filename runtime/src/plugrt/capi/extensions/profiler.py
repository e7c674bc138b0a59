"""Profiler: records a trace of a library's devices, for TensorBoard and xprof."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.loading.function_table import Table
from plugrt.capi.loading.library import Library
from plugrt.errors import FailedPrecondition, Unimplemented
from plugrt.wire.protobuf import find_end, integer, message

_FIELDS = {
    "include_dataset_ops": 1,
    "host_tracer_level": 2,
    "python_tracer_level": 4,
    "enable_hlo_proto": 7,
}
_DEFAULTS = {"include_dataset_ops": 1, "host_tracer_level": 2, "enable_hlo_proto": 1}
"""XLA's defaults (``ProfilerSession::DefaultOptions``), without the device's level."""


class _ProfilerTable(Table):
    prefix = "PLUGIN_Profiler_"


class Profiler:
    """One run of a library's profiler: `start`, `stop`, then `save` or `collect`.

    ``options`` is a serialised ``tensorflow.ProfileOptions`` proto: `encode_options`. In an empty
    one all levels are 0, so that XLA's profilers record nothing of the device.
    """

    def __init__(self, library: Library, options: bytes = b"") -> None:
        base = library.extensions.get("Profiler")
        if base is None:
            raise Unimplemented(f"{library.owner} has no extension Profiler")
        api = ffi.cast("PJRT_Profiler_Extension*", base).profiler_api
        if api == ffi.NULL:
            raise Unimplemented(f"the extension Profiler of {library.owner} is empty")
        names = [name for name, _ in ffi.typeof(api).item.fields[2:]]
        owner = f"the profiler of {library.owner}"
        sizes = library.sizes
        self._table = _ProfilerTable(api, api.struct_size, names, owner, sizes)
        table = self._table

        args = table.call("Create", options=ffi.from_buffer(options), options_size=len(options))
        self._pointer = table.own("Destroy", "profiler", args.profiler)
        self._running = False
        self._trace: bytes | None = None

    def start(self) -> None:
        """Begins to record."""
        self._trace = None
        self._table.call("Start", profiler=self._pointer)
        self._running = True

    def stop(self) -> None:
        """Ends the recording."""
        self._table.call("Stop", profiler=self._pointer)
        self._running = False

    def collect(self) -> bytes:
        """Returns the trace, a serialised ``XSpace`` proto, once the recording has ended."""
        if self._running:
            raise FailedPrecondition("the profiler still runs; stop it before its trace is read")
        if self._trace is None:
            self._trace = self._collect()
        return self._trace

    def _collect(self) -> bytes:
        args = self._table.call("CollectData", profiler=self._pointer)
        if args.buffer == ffi.NULL:  # that was its size, as the header says
            size = args.buffer_size_in_bytes
            target = ffi.cast("uint8_t*", kept := c_values.allocate(size))
            args = self._table.call(
                "CollectData", profiler=self._pointer, buffer=target, buffer_size_in_bytes=size
            )
            if args.buffer == target and args.buffer_size_in_bytes > size:
                raise self._table.invalid(args, f"it filled more than the {len(kept)} bytes it had")
        # Workaround for cuda-profiler-twice
        # Else it is the trace, in the profiler's own memory: XLA's returns it once, and at a second
        # call does not write the given memory (jax-cuda13-pjrt 0.11.2).
        content = self._table.data(args, "buffer", "buffer_size_in_bytes")
        # XLA's profiler counts in a NUL that it writes behind the proto; readers reject it.
        return content[: find_end(content)]

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the trace below ``folder`` where TensorBoard and xprof look; returns the file."""
        run = time.strftime("%Y_%m_%d_%H_%M_%S")
        path = Path(folder) / "plugins" / "profile" / run / f"{socket.gethostname()}.xplane.pb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.collect())
        return path


def encode_options(options: Mapping[str, Any]) -> bytes:
    """Returns a ``tensorflow.ProfileOptions`` proto of options by their names, else XLA's defaults.

    Levels are integers, ``advanced_configuration`` is a dict of texts, integers and bools. Field
    numbers are from ``tsl/profiler/protobuf/profiler_options.proto``.
    """
    flags = _DEFAULTS | {name: value for name, value in options.items() if name in _FIELDS}
    content = [integer(_FIELDS[name], int(value)) for name, value in flags.items()]
    for name, value in options.get("advanced_configuration", {}).items():
        entry = message(1, name.encode()) + message(2, _encode_advanced(value))
        content.append(message(12, entry))
    return integer(5, 1) + integer(3, 1) + b"".join(content)  # version, device_tracer_level


def _encode_advanced(value: bool | int | str) -> bytes:
    if isinstance(value, str):
        return message(1, value.encode())
    return integer(2 if isinstance(value, bool) else 3, int(value))
