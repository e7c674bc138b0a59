"""`record`: a check's puts, launches, reads and comparisons, as steps that need no Python.

The check runs on the NumPy backend. It is code, not data, if it does anything other than the steps
of ``docs/conformance.md``, or compares values that no step has read.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any, NoReturn
from unittest.mock import patch

import numpy as np

from plugrt.capi.abi import proto_wire
from plugrt.capi.abi.element_types import ELEMENT_TYPES
from plugrt.capi.devices.capabilities import ASSUMED
from plugrt.errors import (
    Internal,
    InvalidArgument,
    PjrtError,
    PlugrtError,
    ProgramError,
    Unimplemented,
)
from plugrt.interface import Client, CompileOptions, Device, Program
from plugrt.programs.parsing import convert_to_version
from plugrt_sdk.conformance import expect as expectations
from plugrt_sdk.conformance.check import Check, Needs
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.judge import REFUSALS
from plugrt_sdk.conformance.reference import Reference
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import NotTried

DEVICES = 4
"""The number of devices of the client that checks are recorded on."""
_STABLEHLO = (1, 10, 0)
_WATCHED = (
    "expect", "expect_equal", "expect_same_bits", "expect_close", "expect_refusal", "expect_mistake"
)  # fmt: skip
MOST_BYTES = 5 << 20
"""The maximum size of one check's data, in bytes; a check with more is code."""
_HOST_KINDS = frozenset({PlugrtError, PjrtError, ProgramError, Exception})
"""Exception classes that match any error of a library."""


class NotDataError(BaseException):
    """A check does something that no step can express. Not an `Exception`, which checks catch."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes in the data file."""

    content: bytes


Token = str | int | Blob
Step = tuple[Token, ...]


@dataclass
class Recording:
    """The steps of a check, which need ``devices`` devices.

    ``unimplemented`` and ``other`` are the verdicts if the library refuses a step with
    UNIMPLEMENTED, or with another code.
    """

    steps: list[Step] = field(default_factory=list)
    devices: int = 1
    exact: bool = False
    """Whether it applies only to clients with that number of devices."""
    unimplemented: str = ""
    other: str = ""


class _Told(int):
    """A truth value from a buffer, which a check must compare."""

    step: int


def _refuse(what: str) -> NoReturn:
    raise NotDataError(what)


class _Proxy:
    """Replaces an object of the client interface in a check."""

    def __init__(self, recorder: _Recorder, real: Any, name: str) -> None:
        self.recorder, self.real, self.name = recorder, real, name

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(f"it uses {type(self).__name__[1:]}.{name}")

    def __del__(self) -> None:
        self.recorder.drop(self.name)


class _Buffer(_Proxy):
    def to_host(self) -> Array:
        self.recorder.add("read", name := self.recorder.name("r"), self.name)
        found = np.array(self.real.to_host()) if self.real is not None else np.zeros(0)
        self.recorder.reads[id(found)] = (name, found)
        self.recorder.uncompared.add(name)
        return found

    def block_until_ready(self) -> None:
        self.recorder.add("wait", self.name)

    def ready_event(self) -> _Event:
        return _Event(self)

    def delete(self) -> None:
        self.recorder.add("delete", self.name)
        if self.real is not None:
            self.real.delete()

    def is_deleted(self) -> _Told:
        return self.recorder.tell("deleted", self.name, self.real.is_deleted())


class _Event:
    def __init__(self, buffer: _Buffer) -> None:
        self._buffer = buffer

    def wait(self) -> None:
        self._buffer.block_until_ready()

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(f"it uses Event.{name}")


class _Executable(_Proxy):
    def execute(self, arguments: Sequence[Any], options: Any = None) -> list[list[_Buffer]]:
        if options is not None:
            _refuse("it launches with options")
        rows = [list(row) for row in arguments]
        names = [row[i].name for i in range(len(rows[0]) if rows else 0) for row in rows]
        recorder, count = self.recorder, self.real.devices_launched
        if any(len(row) != count for row in rows):
            _refuse("it hands over too many or too few parts of an array")
        if recorder.symbolic:
            recorder.add("run", self.name, count, len(rows), 0, *names)
            raise Unimplemented("a step that must fail")
        found = self.real.program.execute([[b.real for b in row] for row in rows])
        results = [[_Buffer(recorder, b, recorder.name("b")) for b in row] for row in found]
        made = [row[i].name for i in range(count) for row in results]
        recorder.add("run", self.name, count, len(rows), len(results), *names, *made)
        return results


@dataclass
class _Loaded:
    program: Any
    devices_launched: int


class _RecordingClient:
    """The client that checks are recorded on."""

    def __init__(self, recorder: _Recorder, real: Client) -> None:
        self._recorder, self._real = recorder, real

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(f"it uses Client.{name}")

    def devices(self) -> Sequence[Any]:
        return self._real.devices()

    def addressable_devices(self) -> Sequence[Any]:
        return self._real.addressable_devices()

    def buffer_from_host(
        self, array: Array, device: Any, memory: Any = None, semantics: int = 0, layout: Any = None
    ) -> _Buffer:
        if memory is not None or layout is not None:
            _refuse("it puts an array in a memory or a layout")
        self._recorder.put(name := self._recorder.name("b"), array, device.id, int(semantics))
        made = None
        if not self._recorder.symbolic:
            made = self._real.buffer_from_host(array, device, None, semantics)  # type: ignore[arg-type]
        return _Buffer(self._recorder, made, name)

    def compile(self, program: Program, options: CompileOptions) -> _Executable:
        return self.compile_as(program, program, options)

    def compile_as(self, program: Program, handed: Program, options: CompileOptions) -> _Executable:
        """Compiles a program; the steps contain ``handed``, another form of it."""
        recorder = self._recorder
        count = options.num_replicas * options.num_partitions
        ids = options.device_assignment.flat if options.device_assignment else ()
        places = ",".join(map(str, ids)) or "-"
        there = len(self._real.devices())
        if recorder.symbolic and count > there:  # one more than there are
            recorder.devices, recorder.exact = there, True
        recorder.devices = max(recorder.devices, min(count, there), *(i + 1 for i in ids))
        encoded = proto_wire.compile_options(options)
        name = recorder.name("p")
        form = handed.format.replace(" ", "_")
        recorder.add("compile", name, form, Blob(handed.code), Blob(encoded), places)
        place = len(recorder.steps) - 1
        made = None
        if not recorder.symbolic:
            try:
                made = self._real.compile(program, options)
            except PlugrtError:  # the check may allow it: see `record`
                recorder.steps[place] = ("may", *recorder.steps[place])
                raise
        return _Executable(recorder, _Loaded(made, count), name)


class _Recorder:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.reads: dict[int, tuple[str, Array]] = {}
        """The name of an array that was read, by its id, with the array, so that the id stays
        unique."""
        self.uncompared: set[str | int] = set()
        self.devices, self.exact = 1, False
        self.symbolic = False
        """Whether the recorded code must fail; nothing is run then."""
        self._sources: list[tuple[str, Array, bytes]] = []
        self._count = self._put_bytes = 0
        self._thread = threading.get_ident()
        self._ended = False

    def name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def add(self, *step: Token) -> None:
        if threading.get_ident() != self._thread:
            _refuse("it uses threads")
        for name, array, content in self._sources:
            if _bytes_beneath(array) != content:
                self.steps.append(("scribble", name))
        self._sources = [s for s in self._sources if _bytes_beneath(s[1]) == s[2]]
        self.steps.append(step)

    def put(self, name: str, array: Array, device: int, semantics: int) -> None:
        if array.dtype.byteorder not in "=|" and array.dtype.newbyteorder("=") != array.dtype:
            _refuse("it puts an array of the other byte order, which is the host's to convert")
        self.devices = max(self.devices, device + 1)
        self._put_bytes += array.nbytes
        if self._put_bytes > MOST_BYTES:
            _refuse(f"it puts more than {MOST_BYTES >> 20} MiB")
        content, offset = _bytes_beneath(array), _offset(array)
        strides = "-" if array.flags.c_contiguous else ",".join(map(str, array.strides)) or "-"
        odd = int(bool(array.ctypes.data % array.dtype.alignment))
        kind, dims = type_tokens(array)
        self.add("put", name, device, kind, dims, Blob(content), offset, strides, semantics, odd)
        if array.flags.writeable and semantics < 2:
            self._sources.append((name, array, content))

    def tell(self, what: str, name: str, value: bool) -> _Told:
        self.add(what, name, int(value))
        told = _Told(value)
        told.step = len(self.steps)
        self.uncompared.add(told.step)
        return told

    def drop(self, name: str) -> None:
        """Records that nothing refers to a buffer or a program any longer."""
        if not self._ended:
            self.steps.append(("free", name))

    def end(self) -> None:
        self._ended = True
        if self.uncompared:
            _refuse("it looks otherwise at what it read")
        if not any(step[0] in ("bits", "close", "refused", "deleted") for step in self.steps):
            _refuse("it compares nothing")

    def _read(self, got: object) -> str:
        if id(got) not in self.reads:
            _refuse("it compares what it has computed of what it read")
        name = self.reads[id(got)][0]
        self.uncompared.discard(name)
        return name

    def expect(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("it has a condition of its own")

    def expect_equal(self, got: object, expected: object, what: str) -> None:
        if isinstance(got, _Told) and isinstance(expected, bool):
            self.uncompared.discard(got.step)
        elif what != "results:":  # the step of a launch has the number of results
            _refuse("it compares values that are no arrays")
        expectations.expect_equal(got, expected, what)

    def expect_same_bits(self, got: Array, expected: Array, what: str = "the array") -> None:
        name = self._read(got)
        expectations.expect_same_bits(got, expected, what)
        self.add("bits", name, *type_tokens(expected), Blob(expected.tobytes()))

    def expect_close(
        self, got: Array, expected: Array, ulps: int, what: str = "the result", *,
        of_largest: bool = False,
    ) -> None:  # fmt: skip
        name = self._read(got)
        expectations.expect_close(got, expected, ulps, what, of_largest=of_largest)
        content = Blob(expected.tobytes())
        self.add("close", name, *type_tokens(expected), content, ulps, int(of_largest))

    def expect_mistake(self, call: Callable[[], Any], what: str, *, known: bool = False) -> None:
        self.expect_refusal(call, InvalidArgument if known else PlugrtError, what=what)

    def expect_refusal(
        self, call: Callable[[], Any], *kinds: type[BaseException], what: str
    ) -> None:
        codes = "any"
        if not _HOST_KINDS & {*kinds}:
            if not all(issubclass(kind, PjrtError) for kind in kinds):
                _refuse("it expects an error of plugrt's own")
            codes = ",".join(str(kind.code) for kind in kinds if issubclass(kind, PjrtError))
        if self.symbolic:
            _refuse("it expects an error within another one")
        self.add("refuse", codes)
        self.symbolic = True
        try:
            call()
        except Unimplemented:  # the launch is the last step
            pass
        finally:
            self.symbolic = False
        names = [self.reads.pop(key) for key in [k for k, r in self.reads.items() if not r[1].size]]
        self.uncompared -= {name for name, _ in names}
        self.add("refused")


def type_tokens(array: Array) -> tuple[int, str]:
    """Formats the ``PJRT_Buffer_Type`` and the dimensions of an array, ``-`` if there are none."""
    kind = ELEMENT_TYPES[array.dtype.newbyteorder("=")]
    return kind, "x".join(map(str, array.shape)) or "-"


def _extent(array: Array) -> tuple[int, int]:
    """Returns the begin and the end of an array's memory, relative to its first element."""
    if not array.size:
        return 0, 0
    reach = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    low = sum(r for r in reach if r < 0)
    return low, sum(r for r in reach if r > 0) + array.itemsize


def _offset(array: Array) -> int:
    return 0 if array.flags.c_contiguous else -_extent(array)[0]


def _bytes_beneath(array: Array) -> bytes:
    """Returns the memory of an array, including the gaps between a view's elements."""
    if array.flags.c_contiguous:
        return array.tobytes()
    low, high = _extent(array)
    return ctypes.string_at(array.ctypes.data + low, high - low)


class _RecordedSubject(PluginSubject):
    """The subject of a recorded check; its client records each call."""

    def __init__(self, recorder: _Recorder, client: Client, seed: int) -> None:
        super().__init__(Target("plugin", "numpy"), seed)
        self._recorder = recorder
        self.__dict__["client"] = _RecordingClient(recorder, client)
        self.__dict__["reference"] = _reference()

    @property
    def declared(self) -> NoReturn:
        _refuse("it goes by what the client declares")

    def states(self, capability: str) -> bool:
        _refuse("it goes by what the client declares")

    def require_room(self, count: int, device: Device) -> None:
        pass  # the C runner does not read a device's memory size

    def compile(self, text: str, **options: Any) -> Any:
        compile_as = self.client.compile_as  # type: ignore[attr-defined]
        program = Program(text.encode())
        return compile_as(program, portable(program), CompileOptions(**options))

    def run(self, text: str, *arrays: Any) -> list[Array]:
        try:
            return super().run(text, *arrays)
        except Unimplemented:
            if self._recorder.symbolic:  # a call that must fail may fail when its result is read
                self._recorder.add("read_all")
            raise

    def launches(self, text: str, turn: int, turns: int, *arrays: Any) -> Iterator[list[Array]]:
        yield self.run(text, *arrays)  # one launch, which devices of any number can repeat

    def check_declared(
        self, capability: str, step: Callable[[], None], *refusals: type[Exception]
    ) -> None:
        step()


class _RefusingClient:
    """A client that refuses everything."""

    def __init__(self, real: Client, error: PjrtError) -> None:
        self._real, self._error = real, error

    def __getattr__(self, name: str) -> Any:
        if name in ("devices", "addressable_devices", "capabilities"):
            return getattr(self._real, name)
        raise self._error


class _RefusedSubject(PluginSubject):
    def __init__(self, client: Client, error: PjrtError) -> None:
        super().__init__(Target("plugin", "numpy"))
        self.__dict__["client"] = _RefusingClient(client, error)

    def states(self, capability: str) -> bool:
        return capability not in ASSUMED


def _judge_refused(check: Check, client: Client, error: PjrtError) -> str:
    """Returns the kit's verdict on a check that a library refuses."""
    try:
        check.run(_RefusedSubject(client, error))
    except REFUSALS:
        if check.refusable or check.capability in ASSUMED:
            return "REFUSED"
    except Exception:  # noqa: BLE001, S110  # whatever else it raises is a failure
        pass
    return "FAIL"


def record(check: Check, seed: int = 0) -> list[Recording]:
    """Returns the recordings of a check, the one for the most devices first.

    Raises `NotDataError` if the check is code.
    """
    if check.needs not in (Needs.CLIENT, Needs.TWO_DEVICES):
        _refuse(f"it needs {check.needs}")
    if check.capability not in ("", "multiple_devices", *ASSUMED):
        _refuse(f"it goes by {check.capability}")
    if check.capability == "multiple_devices" and check.needs is not Needs.TWO_DEVICES:
        _refuse(f"it goes by {check.capability}")
    found = [_record(check, DEVICES, seed)]
    if found[0].devices > 1 and check.needs is Needs.CLIENT:
        found.append(_record(check, 1, seed))
    return found


def _record(check: Check, devices: int, seed: int) -> Recording:
    client = _client(devices)
    recorder = _Recorder()
    try:
        with _watched(recorder):
            check.run(_RecordedSubject(recorder, client, seed))
        recorder.end()
    except NotDataError:
        raise
    except NotTried as error:
        _refuse(error.why)
    except Exception as error:  # noqa: BLE001  # what the reference cannot do, no data show
        _refuse(f"on the NumPy backend: {error}"[:200].partition("\n")[0])
    return Recording(
        recorder.steps, recorder.devices, recorder.exact,
        _judge_refused(check, client, Unimplemented("")),
        _judge_refused(check, client, Internal("")),
    )  # fmt: skip


@contextmanager
def _watched(recorder: _Recorder) -> Iterator[None]:
    """Replaces the functions of `expect` by the recorder's in the modules of checks.

    The replacement keeps recordings out of the kit's own code, whose hash is in each report.
    """
    with ExitStack() as stack:
        for module, name in _uses():
            stack.enter_context(patch.object(module, name, getattr(recorder, name)))
        yield


@cache
def _uses() -> Sequence[tuple[ModuleType, str]]:
    package = expectations.__name__.rpartition(".")[0]
    modules = [m for n, m in sys.modules.items() if n.startswith(package) and m is not expectations]
    kept = [m for m in modules if m.__name__ not in (__name__, f"{package}.judge")]
    return [
        (module, name) for module in kept for name in _WATCHED
        if getattr(module, name, None) is getattr(expectations, name)
    ]  # fmt: skip


@cache
def _client(devices: int) -> Client:
    target = Target("plugin", "numpy", {"num_devices": devices})
    return target.create_client(target.load())


@cache
def _reference() -> Reference:
    return Reference()


def portable(program: Program) -> Program:
    """Returns a program as a portable artifact for libraries of the last two years.

    The version is `_STABLEHLO`, or the newest one if the program has newer operations.
    """
    try:
        return convert_to_version(program, _STABLEHLO)
    except ProgramError:
        return convert_to_version(program, None)
