"""`expect_as_oracles`: compares a program's results with NumPy's and the interpreter's."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import partial

from plugrt.errors import PjrtError, ProgramError
from plugrt_sdk.conformance.expect import Array, expect_close, expect_equal
from plugrt_sdk.conformance.operations.sample import Sample
from plugrt_sdk.conformance.subject import PluginSubject

BOTH = "NumPy's and the reference interpreter's result"


def expect_as_oracles(
    subject: PluginSubject, text: str, arguments: Sequence[Array], wanted: Sequence[Array],
    ulps: int, of_largest: bool = False, interpreted: bool = True, turn: int = 0, turns: int = 1,
) -> None:  # fmt: skip
    """Runs a program and compares its results with NumPy's, and with the interpreter's.

    It is launched several times, on the device whose turn it is. The tolerance is twice as large
    for the interpreter, which rounds after each operation.
    """
    found: Sequence[Array] = []
    bits: Sequence[object] = ()
    for results in subject.launches(text, turn, turns, *arguments):
        given = [(result.dtype, result.shape, result.tobytes()) for result in results]
        if given != bits:
            found, bits = results, given
            _compare(found, wanted, ulps, "NumPy's result", of_largest)
    reference = subject.reference.evaluate(text, arguments) if interpreted else None
    if reference is not None:
        _compare(found, reference, 2 * ulps, "the reference interpreter's result", of_largest)


def _compare(
    found: Sequence[Array], wanted: Sequence[Array], ulps: int, what: str, of_largest: bool
) -> None:
    expect_equal(len(found), len(wanted), "results:")
    for i, (result, oracle) in enumerate(zip(found, wanted, strict=True)):
        which = f"{what} {i}" if len(wanted) > 1 else what
        expect_close(result, oracle, ulps, which, of_largest=of_largest)


def turn_of(name: str, dtypes: Sequence[str], dtype: str) -> int:
    """Returns the number of the device that runs an operation on a dtype."""
    return zlib.crc32(name.encode()) + list(dtypes).index(dtype)


def try_sample(subject: PluginSubject, sample: Sample, dtype: str) -> None:
    """Runs a sample's program for one dtype."""
    program, wanted = sample.make(dtype, subject.seed)
    try_program = partial(
        expect_as_oracles, subject, program.text(), program.arguments, wanted,
        subject.ulps(dtype, sample.ulps), sample.of_largest, sample.interpreted,
        turn_of(sample.id, sample.dtypes, dtype), len(sample.dtypes),
    )  # fmt: skip
    if sample.uncommon:
        subject.check_declared(sample.name, try_program, PjrtError, ProgramError)
    else:
        try_program()


def describe_result(sample: Sample) -> str:
    """Returns whose results a sample is compared with, the tolerance, and the tested part."""
    unit = "ulp of the largest" if sample.of_largest else "ulp"
    within = f" within {sample.ulps} {unit}" if sample.ulps else " exactly"
    what = sample.what[0].lower() + sample.what[1:] if sample.what[1:2].islower() else sample.what
    oracle = BOTH if sample.interpreted else "NumPy's result"
    return f"{oracle}{within}: {what}" + (" (or is refused)" if sample.uncommon else "")
