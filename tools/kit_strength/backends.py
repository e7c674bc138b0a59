"""Defects of backends over the SDK: one method of the NumPy backend does one thing wrong.

``KIT_STRENGTH`` in the environment has the settings, in JSON. The kit runs ``plugin``.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from plugrt.errors import Internal, Unimplemented
from plugrt.interface import CompileOptions, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendPlugin

Array = np.ndarray[Any, Any]
METHODS = {
    "put": "\\bput|put_get|from the host",
    "get": "read|\\bget|put_get|to the host",
    "launch": "execut|launch|result|program",
    "copy": "cop(y|ies|ied)|another device",
}
"""The methods that change arrays, and the words of a check that names them."""


def _flat(change: Callable[[Array, Array], None]) -> Callable[[Array, Array], Array]:
    def changed(array: Array, before: Array) -> Array:
        out = np.array(array, copy=True, order="C")
        change(out.reshape(-1), before.reshape(-1))
        return out

    return changed


def _drop(a: Array, old: Array) -> None:
    a[-1] = np.zeros((), a.dtype)


def _swap(a: Array, old: Array) -> None:
    a[0], a[-1] = old[-1], old[0]


def _bit(a: Array, old: Array) -> None:
    view = a.view(np.uint8)
    view[-1] ^= 1 if a.dtype == np.bool_ else 0x80 if a.itemsize > 1 else 4


def _half(a: Array, old: Array) -> None:
    a[a.size // 2 :] = np.zeros((), a.dtype)


def _shift(a: Array, old: Array) -> None:
    a[1:] = old[:-1]


def _swap_bytes(a: Array, old: Array) -> None:
    view = a.view(np.uint8).reshape(a.size, -1)
    view[:] = view[:, ::-1].copy()


CHANGES = {
    "dropped": ("the last element is lost", _drop),
    "swapped": ("the first and the last element are swapped", _swap),
    "bit": ("a bit of the last element is wrong", _bit),
    "truncated": ("the second half is zero", _half),
    "shifted": ("all elements stand one place too far", _shift),
    "byteswapped": ("the bytes of each element are reversed", _swap_bytes),
}
CONDITIONS = {
    "size": "of exactly {} elements", "above": "of more than {} elements", "rank": "of rank {}",
    "dtype": "of type {}", "device": "on device {}", "every": "at every {}th time",
    "thread": "called by another thread than the first",
}  # fmt: skip
POOLS: dict[str, tuple[Any, ...]] = {
    "size": (3, 7, 16, 31, 33, 63, 65, 127, 129, 255, 257, 1000, 1023, 1025, 4096, 65537),
    "above": (1000, 10_000, 100_000, 1_000_000),
    "rank": (0, 1, 2, 4, 5, 6),
    "dtype": ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint64", "float16",
              "float32", "float64", "bfloat16", "complex64", "float8_e4m3fn", "int4"),
    "device": (1, 2, 3),
    "every": (2, 7, 13, 50, 97, 500),
    "thread": (1,),
}  # fmt: skip
SPECIALS = {
    "wrong_device": ("copy", METHODS["copy"] + "|device", "a copy to another device is a copy of the last put"),  # noqa: E501
    "results_reversed": ("launch", METHODS["launch"] + "|order", "the results of a program are in reverse order"),  # noqa: E501
    "devices_reversed": ("launch", "device|replica|partition|collective|execut", "the results of devices are in reverse order"),  # noqa: E501
    "stale_program": ("compile", "compil|cache|program", "a program is one of the same size that was compiled before"),  # noqa: E501
    "stale_result": ("launch", METHODS["launch"] + "|repeat", "every second launch returns the results before"),  # noqa: E501
    "refused_as_missing": ("compile", "error|refus|invalid|syntax|code", "all errors of the compiler are UNIMPLEMENTED"),  # noqa: E501
    "internal": ("launch", "error|refus|invalid|code", "all errors of launches are INTERNAL"),
    "leak": ("put", "leak|memory|endur|grow|cycle", "4 KiB are lost at every put"),
    "leak_launch": ("launch", "leak|memory|endur|grow|cycle", "16 KiB are lost at every launch"),
    "descriptors": ("put", "leak|descriptor|file|endur|grow", "a file descriptor is lost at every fourth put"),  # noqa: E501
    "threads": ("launch", "leak|thread|endur|grow", "a thread is left by every eighth launch"),
    "one_device_less": ("devices", "device", "there is one device less than was asked for"),
    "version": ("version", "version", "the version is empty"),
}  # fmt: skip


def draw(random: Random) -> tuple[str, str, str, str, str]:
    """Returns settings, kind, method, words and sentence of a backend's defect."""
    if random.random() < 0.4:
        name = random.choice(tuple(SPECIALS))
        method, words, says = SPECIALS[name]
        return json.dumps({"special": name}), name, method, words, f"Backend.{method}: {says}."
    method = random.choice(("put", "get", "launch", "launch", "copy"))
    change = random.choice(tuple(CHANGES))
    condition = random.choice(tuple(POOLS))
    value = random.choice(POOLS[condition])
    where = CONDITIONS[condition].format(value)
    settings = {"method": method, "change": change, "condition": condition, "value": value}
    sentence = f"Backend.{method}: {CHANGES[change][0]}, in an array {where}."
    return json.dumps(settings), f"{method}.{change}@{condition}", method, METHODS[method], sentence


class DefectBackend(NumpyBackend):
    """`NumpyBackend` with the defect that the settings describe."""

    def __init__(self, num_devices: int | str = 1) -> None:
        self.settings = json.loads(os.environ.get("KIT_STRENGTH", "{}"))
        self.special = self.settings.get("special", "")
        count = int(num_devices)
        super().__init__(count - (self.special == "one_device_less" and count > 1))
        if self.special == "version":
            self.version = ""
        self._calls = 0
        self._programs: dict[int, Program] = {}
        self._lost: list[Any] = []
        self._before: dict[int, Any] = {}
        self._last: Any = None
        self._first = threading.get_ident()

    def _changed(self, method: str, array: Any, device: int) -> Any:
        found = self.settings
        if found.get("method") != method or not isinstance(array, np.ndarray) or not array.size:
            return array
        value = found["value"]
        tests = {
            "size": lambda: array.size == value,
            "above": lambda: array.size > value,
            "rank": lambda: array.ndim == value,
            "dtype": lambda: array.dtype.name == value,
            "device": lambda: device == value,
            "thread": lambda: threading.get_ident() != self._first,
            "every": self._is_due,
        }
        if not tests[found["condition"]]():
            return array
        out = _flat(CHANGES[found["change"]][1])(array, np.array(array, copy=True, order="C"))
        out.flags.writeable = False
        if method in ("copy", "launch"):  # a handle of the backend's
            self._memory.remove(array)
            return self._memory.add(out, device)
        return out

    def _is_due(self) -> bool:
        self._calls += 1
        return self._calls % int(self.settings["value"]) == 0

    def put(self, array: Array, device: int) -> Any:
        self._calls += bool(self.special)
        if self.special == "leak":
            self._lost.append(bytearray(b"1") * 4096)
        if self.special == "descriptors" and self._calls % 4 == 0:
            os.open("/dev/null", os.O_RDONLY)
        self._last = super().put(self._changed("put", array, device), device)
        return self._last

    def alias(self, array: Array, device: int) -> Any:
        return self.put(array, device)  # JAX's way, which would bypass the defect

    def view(self, handle: Any) -> Array:
        return self.get(handle)

    def get(self, handle: Any) -> Array:
        array: Array = self._changed("get", super().get(handle), 0)
        return array

    def copy(self, handle: Any, device: int) -> Any:
        copied = super().copy(handle, device)
        if self.special == "wrong_device" and self._last is not None:
            same = getattr(self._last, "shape", None) == getattr(copied, "shape", 0)
            return self._last if same and self._last.dtype == copied.dtype else copied
        return self._changed("copy", copied, device)

    def compile(self, program: Program, options: CompileOptions) -> Any:
        if self.special == "stale_program":
            program = self._programs.setdefault(len(program.code), program)
        try:
            launch = super().compile(program, options)
        except Exception as error:
            if self.special == "refused_as_missing":
                raise Unimplemented(str(error)) from error
            raise
        return self._launching(launch)

    def deserialize(self, content: bytes, program: Program, options: CompileOptions) -> Any:
        return self._launching(super().deserialize(content, program, options))

    def _launching(self, launch: Any) -> Any:
        def wrong(*arguments: Any) -> Any:
            try:
                results = [list(result) for result in launch(*arguments)]
            except Exception as error:
                if self.special == "internal":
                    raise Internal(str(error)) from error
                raise
            return self._results(id(launch), results)

        vars(wrong).update(vars(launch))
        return wrong

    def _results(self, key: int, results: list[list[Any]]) -> list[list[Any]]:
        self._calls += bool(self.special)
        if self.special == "leak_launch":
            self._lost.append(bytearray(b"1") * 16384)
        if self.special == "threads" and self._calls % 8 == 0:
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        if self.special == "results_reversed":
            return results[::-1]
        if self.special == "devices_reversed":
            return [result[::-1] for result in results]
        if self.special == "stale_result":
            before, self._before[key] = self._before.get(key), results
            return before if before is not None and self._calls % 2 else results
        return [[self._changed("launch", a, d) for d, a in enumerate(r)] for r in results]


plugin = BackendPlugin("kit_strength", DefectBackend)
plugin.conformance_options = {"num_devices": 4}
