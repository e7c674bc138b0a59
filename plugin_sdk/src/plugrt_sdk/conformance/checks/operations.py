"""Level 2: StableHLO's operations, an id for each operation and dtype, against two oracles.

They are NumPy, which computes in float64 and rounds once, and StableHLO's reference interpreter,
for the operations that it has.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial

import numpy as np

from plugrt.errors import PjrtError, PlugrtError, Unimplemented, UnsupportedDtype, describe
from plugrt.interface import CompileOptions, Program
from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.expect import expect_same_bits
from plugrt_sdk.conformance.operation_cases import (
    CASES,
    COMPLEX,
    MATRIX,
    RIGHT_OF_TWO,
    Case,
    arguments_of,
    case_id,
    expected_of,
    program_of,
    shape_of,
    ulps_of,
)
from plugrt_sdk.conformance.operations import SAMPLES
from plugrt_sdk.conformance.oracles import (
    BOTH,
    describe_result,
    expect_as_oracles,
    try_sample,
    turn_of,
)
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.program_text import ProgramText
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("operations", Level.COMPUTES, "StableHLO specification")

_DEMANDED = frozenset({("add", "float32"), ("multiply", "float32")})
"""The operations and dtypes that no backend may refuse."""
_WHY = "programs compute wrong numbers, and nothing says so"


def _elementwise(subject: PluginSubject, case: Case, dtype: str) -> None:
    shape = shape_of(case, dtype)
    try:
        _try_shape(subject, case, dtype, shape)
    except (Unimplemented, UnsupportedDtype) as error:
        if len(shape) == len(MATRIX):
            raise
        _try_shape(subject, case, dtype, MATRIX)
        subject.refuse(f"of {len(shape)} {RIGHT_OF_TWO}: {describe(error)}")


def _try_shape(subject: PluginSubject, case: Case, dtype: str, shape: tuple[int, ...]) -> None:
    # The same numbers in every shape: an operation's domain limits numbers.
    numbers = arguments_of(case, dtype, MATRIX, subject.random(f"{case_id(case)}.{dtype}"))
    arguments = [a.reshape(-1)[: math.prod(shape)].reshape(shape) for a in numbers]
    wanted = [expected_of(case, arguments)]
    expect_as_oracles(
        subject, program_of(case, dtype, shape), arguments, wanted,
        subject.ulps(dtype, ulps_of(case, dtype)), of_largest=dtype in COMPLEX,
        turn=turn_of(case_id(case), case.dtypes, dtype), turns=len(case.dtypes),
    )  # fmt: skip


for _case in CASES:
    for _dtype in _case.dtypes:
        _unit = "ulp of the largest" if _dtype in COMPLEX else "ulp"
        CHAPTER.add(
            f"{case_id(_case)}.{_dtype}",
            f"{case_id(_case)} on {_dtype} gives {BOTH}"
            + (f" within {ulps_of(_case, _dtype)} {_unit}." if _case.ulps else " exactly."),
            partial(_elementwise, case=_case, dtype=_dtype),
            rests_on=f"StableHLO specification: {_case.name}",
            refusable=(_case.name, _dtype) not in _DEMANDED,
            why=_WHY,
        )


for _sampled in SAMPLES:
    for _dtype in _sampled.dtypes:
        CHAPTER.add(
            f"{_sampled.id}.{_dtype}",
            f"{_sampled.name} on {_dtype} gives {describe_result(_sampled)}.",
            partial(try_sample, sample=_sampled, dtype=_dtype),
            rests_on=f"StableHLO specification: {_sampled.name}", refusable=True, why=_WHY,
        )  # fmt: skip


_QUANTISED = """func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.uniform_quantize %a
    : (tensor<3xf32>) -> tensor<3x!quant.uniform<i8:f32, 5.0e-01:1>>
  %1 = stablehlo.uniform_dequantize %0
    : (tensor<3x!quant.uniform<i8:f32, 5.0e-01:1>>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}"""


@CHAPTER.check(
    "uniform_quantize.float32", refusable=True, why=_WHY,
    rests_on="StableHLO specification: uniform_quantize, uniform_dequantize",
)  # fmt: skip
def uniform_quantize(subject: PluginSubject) -> None:
    """Halves are exact in 8 bits of a half each, and come back; or quantised types are refused."""
    try:  # as text: jaxlib's Python bindings have none of these types
        program = subject.client.compile(Program(_QUANTISED.encode()), CompileOptions())
    except PlugrtError as error:
        subject.refuse(describe(error))
    halves = np.array([-3.5, 0.0, 61.5], np.float32)
    [[found]] = program.execute([(subject.put(halves),)])
    expect_same_bits(found.to_host(), halves)


_TOKEN = "!stablehlo.token"
_BESIDE = {
    "infeed": 'infeed_config = "", layout = [[0]]',
    "outfeed": 'outfeed_config = ""',
    "send": "channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, "
            "is_host_transfer = true",
    "recv": "channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, "
            "is_host_transfer = true",
}  # fmt: skip
HOST_TRANSFERS = tuple(_BESIDE)
"""The operations that exchange data with the host while a program runs.

A launch of the first two waits for a host, which the C API cannot provide: they are compiled, and
not launched.
"""


def _host_transfer(subject: PluginSubject, name: str) -> None:
    program = ProgramText()
    x = program.argument(ONE)
    token = program.apply("create_token", [], [_TOKEN], returned=False)
    if name in ("infeed", "recv"):
        program.apply(name, token, [x[1], _TOKEN], _BESIDE[name], returned=False)
    else:
        program.apply(name, [x, *token], [_TOKEN], _BESIDE[name], returned=False)
    program.apply("negate", [x], [x[1]])
    with suppress(PjrtError):
        subject.compile(program.text())
    [total] = subject.run(programs.ADD, ONE, ONE)
    expect_same_bits(total, ONE + ONE, "of the next program, the sum")


for _name in HOST_TRANSFERS:
    CHAPTER.add(
        f"{_name}.compiled",
        f"A program with {_name} is compiled or refused, and the next program computes.",
        partial(_host_transfer, name=_name),
        rests_on=f"StableHLO specification: {_name}",
        why="a program that waits for its host ends the compiler's process",
    )
