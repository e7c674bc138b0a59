"""`judge`: runs one check in this process and returns its verdict."""

from __future__ import annotations

import inspect
import linecache
import re
import time
import traceback
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from types import TracebackType

import numpy as np

from plugrt.errors import (
    HARDWARE_ABSENT,
    InvalidArgument,
    PjrtError,
    PluginUnavailable,
    Unimplemented,
    UnsupportedDtype,
    describe,
)
from plugrt.interface import CompileOptions, Program
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.plugin import Plugin
from plugrt_sdk.conformance.check import Check, Needs
from plugrt_sdk.conformance.expect import WARNINGS, Mismatch, expect, expect_same_bits, show
from plugrt_sdk.conformance.function_table import nothing_written_later
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.target import find_library_fault
from plugrt_sdk.conformance.verdict import WARNED, NotTried, Result, Verdict

REFUSALS = (Unimplemented, UnsupportedDtype)
"""The errors that count as a refusal of an undeclared feature."""
LAUNCH = "programs.add"
"""The check of the simplest launch: if the device refuses it, no check that launches is tried."""
_UNIMPLEMENTED = re.compile(r"(?i)unimplemented|\b12\b")
_PROBE = np.arange(6, dtype=np.float32)


def judge(check: Check, subject: PluginSubject) -> Result:
    """Runs a check and returns the result; passes on only ``KeyboardInterrupt``."""
    begin = time.perf_counter()
    try:
        result = _try(check, subject)
    except KeyboardInterrupt:
        raise
    except NotTried as found:
        result = Result(found.verdict, got=found.why, applies=found.applies)
    except Mismatch as found:
        where = _source_line(found.__traceback__, check)
        result = Result(Verdict.FAIL, found.expected, found.got, where)
    except AssertionError as error:
        result = Result(Verdict.FAIL, *_read_assertion(error, check))
    except BaseException as error:  # noqa: BLE001  # a plugin may raise anything
        where = _source_line(error.__traceback__, check)
        result = Result(Verdict.FAIL, "no error", _with_origin(error), where)
    if result.verdict is Verdict.FAIL and _cannot_launch(check, subject, result):
        result = Result(Verdict.NOT_RUN, got=f"{LAUNCH}: no program can be launched")
    seconds = round(time.perf_counter() - begin, 4)
    return Result(**{**result.as_dict(), "seconds": seconds})


def _cannot_launch(check: Check, subject: PluginSubject, result: Result) -> bool:
    """Whether a check failed because the device refuses every launch, even a sum."""
    if check.id == LAUNCH or not check.needs.has_client or not _UNIMPLEMENTED.search(result.got):
        return False
    asked = subject.kept if check.needs.has_table else subject  # it may need the only client
    words: str = getattr(asked, "launch_refusal", "")
    return bool(words) and words in result.got


def _try(check: Check, subject: PluginSubject) -> Result:
    if check.needs.has_table:
        _require_library(subject.plugin)
    if check.needs is Needs.TWO_DEVICES and len(subject.client.addressable_devices()) < 2:
        return _refuses_two_devices(subject)
    declared = not check.capability or bool(getattr(subject.declared, check.capability))
    try:
        subject.used_dtypes.clear()
        WARNINGS.clear()
        with _ready(check, subject):
            check.run(subject)
    except REFUSALS as error:
        may_refuse = check.refusable or not subject.states(check.capability)
        if declared and not may_refuse and not _lacks_dtype(check, subject):
            what = f"it works: {check.capability} is declared" if check.capability else "it works"
            raise Mismatch(what, f"it was refused: {describe(error)}") from error
        if check.needs.has_client and not check.needs.has_table:
            _expect_alive(subject)
        return Result(Verdict.REFUSED, got=describe(error))
    if not declared and subject.states(check.capability):
        raise Mismatch(
            f"Unimplemented, because the client does not declare {check.capability}",
            f"it works; declare {check.capability}",
        )
    return Result(Verdict.PASS, got="; ".join([WARNED, *WARNINGS]) if WARNINGS else "")


def _lacks_dtype(check: Check, subject: PluginSubject) -> bool:
    """Whether a refused check used a dtype that the device does not have."""
    return check.needs.has_client and not check.needs.has_table and subject.lacks_dtype()


def _ready(check: Check, subject: PluginSubject) -> AbstractContextManager[object]:
    """Sets the variables that a library needs to start, if the check calls its functions itself.

    Also detects writes of the library beyond its arguments.
    """
    if not check.needs.has_table:
        return nullcontext()
    assert isinstance(subject.plugin, LibraryPlugin)
    ready = ExitStack()
    ready.enter_context(subject.plugin.starting())
    ready.enter_context(nothing_written_later())
    return ready


def _require_library(plugin: Plugin) -> None:
    """Raises `NotTried` for a plugin without a PJRT library, or whose library is not installed.

    A missing library is the finding of one check, ``host.library``.
    """
    if not isinstance(plugin, LibraryPlugin):
        raise NotTried(Verdict.NOT_RUN, "the plugin is no PJRT library", applies=False)
    if fault := find_library_fault(plugin):
        raise NotTried(Verdict.NOT_RUN, fault)


def _expect_alive(subject: PluginSubject) -> None:
    """Puts and reads an array: a refusal must leave the client unchanged."""
    try:
        found = subject.put(_PROBE).to_host()
    except PjrtError as error:
        raise Mismatch("the client to work on after a refusal", describe(error)) from error
    expect_same_bits(found, _PROBE, "after a refusal, an array that is put and read:")


def _refuses_two_devices(subject: PluginSubject) -> Result:
    """Expects that a client of one device refuses a program for two, and claims only one."""
    from plugrt_sdk.testing.programs import ADD

    expect(not subject.declared.multiple_devices, "two devices: multiple_devices is declared", "1")
    options = CompileOptions(num_replicas=2)
    try:
        subject.client.compile(Program(ADD.encode()), options)
    except (InvalidArgument, Unimplemented) as error:
        _expect_alive(subject)
        return Result(Verdict.REFUSED, got=describe(error))
    raise Mismatch("InvalidArgument for two replicas on one device", "the program was compiled")


def is_hardware_absent(error: BaseException) -> bool:
    """Whether an exception from starting a client says that there is no device."""
    return isinstance(error, (PluginUnavailable, *HARDWARE_ABSENT))


def _own_frame(trace: TracebackType | None, check: Check) -> traceback.FrameSummary | None:
    """Returns the innermost frame in the check's own module."""
    body = check.run.func if isinstance(check.run, partial) else check.run
    file = inspect.getfile(body)
    frames = [f for f in traceback.extract_tb(trace) if f.filename == file]
    return frames[-1] if frames else None


def _source_line(trace: TracebackType | None, check: Check) -> str:
    frame = _own_frame(trace, check)
    return f"{frame.filename}:{frame.lineno}: {frame.line}" if frame else ""


def _read_assertion(error: AssertionError, check: Check) -> tuple[str, str, str]:
    """Returns expected value, value found and place of a failed assertion.

    For an ``assert``, its line and its variables; for a raised `AssertionError`, its text.
    """
    last = None
    trace = error.__traceback__
    while trace is not None:
        last, trace = trace, trace.tb_next
    if last is None:
        return "the assertion to hold", describe(error), ""
    code, number = last.tb_frame.f_code, last.tb_lineno
    line = linecache.getline(code.co_filename, number).strip()
    if not line.startswith("assert "):
        return "the statement to hold", str(error), _source_line(error.__traceback__, check)
    names = [n for n in last.tb_frame.f_locals if n in line.replace(".", " ").split() or n in line]
    values = ", ".join(f"{n} = {show(last.tb_frame.f_locals[n])}" for n in names if n != "subject")
    got = "; ".join(filter(None, (str(error).strip().replace("\n", " "), values)))
    return (
        line.removeprefix("assert "),
        got or "it does not hold",
        _source_line(error.__traceback__, check),
    )


def _with_origin(error: BaseException) -> str:
    """Formats an exception with the line that raised it, which may be the plugin's."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" (raised in {frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return describe(error) + place
