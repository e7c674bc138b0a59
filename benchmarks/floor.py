"""`Floor`: calls the library from C (floor.c, compiled here), to measure the overhead of Python."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.capi.abi.generate import cdef
from plugrt.capi.abi.proto_wire import compile_options
from plugrt.interface import CompileOptions, DeviceAssignment

_INCLUDES = "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
_SIGNATURES = {
    "floor_open": (ctypes.c_int, [ctypes.c_char_p]),
    "floor_compile": (
        ctypes.c_void_p,
        [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int,
         ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int64],
    ),
    "floor_launch": (ctypes.c_double, [ctypes.c_void_p, ctypes.c_int, ctypes.c_long]),
    "floor_put": (
        ctypes.c_double, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_long]
    ),
    "floor_get": (
        ctypes.c_double, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_long]
    ),
    "floor_nothing": (ctypes.c_double, [ctypes.c_long]),
}  # fmt: skip

Timer = Callable[[int], float]
"""A function from a number of calls to the mean seconds of a call."""


def compile_floor(folder: Path) -> Path:
    """Compiles floor.c into a folder; raises `FileNotFoundError` without a C compiler (``cc``)."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("the floor is written in C, and there is no cc")
    (folder / "pjrt.h").write_text(_INCLUDES + cdef() + "\n")
    made, source = folder / "floor.so", Path(__file__).with_name("floor.c")
    subprocess.run(
        [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{folder}", str(source), "-o",
         str(made), "-ldl"],
        check=True,
    )  # fmt: skip
    return made


class Floor:
    """A client in C. Its methods return timers for the harness.

    Raises `FileNotFoundError` without a C compiler (``cc``). Does not load a library twice: the
    dynamic loader returns the one that Python has loaded.
    """

    def __init__(self, library: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self._c = ctypes.CDLL(str(compile_floor(Path(folder))))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._c, name)
            function.restype, function.argtypes = result, arguments
        self.devices: int = self._c.floor_open(str(library).encode())
        """The number of devices of the client."""

    def launch(
        self, program: str, array: npt.NDArray[np.float32], arguments: int, results: int,
        replicas: int = 1, wait: bool = False, options: CompileOptions | None = None,
    ) -> Timer:  # fmt: skip
        """Times launches of a program; each of its arguments is like ``array``.

        Uses the first ``replicas`` devices, or those of ``options``: there each argument's part on
        a device is like ``array``.
        """
        code = program.encode()
        if options is None:
            ids = tuple((i,) for i in range(replicas))
            options = CompileOptions(num_replicas=replicas, device_assignment=DeviceAssignment(ids))
        written = compile_options(options)
        made = self._c.floor_compile(
            code, len(code), written, len(written), options.num_replicas * options.num_partitions,
            arguments, results, array.ctypes.data, array.size,
        )  # fmt: skip
        return lambda count: self._call("floor_launch", made, wait, count)

    def put(self, array: npt.NDArray[np.float32], replicas: int = 1) -> Timer:
        """Times puts of ``array`` on ``count`` devices."""
        return lambda count: self._call("floor_put", array.ctypes.data, array.size, replicas, count)

    def get(self, array: npt.NDArray[np.float32], direct: bool = True) -> Timer:
        """Times reads of ``array``: directly from the buffer, or by a transfer."""
        return lambda count: self._call("floor_get", array.ctypes.data, array.size, direct, count)

    def nothing(self) -> Timer:
        """Times a function of the library that does nothing."""
        return lambda count: self._call("floor_nothing", count)

    def _call(self, name: str, *arguments: Any) -> float:
        return float(getattr(self._c, name)(*arguments))
