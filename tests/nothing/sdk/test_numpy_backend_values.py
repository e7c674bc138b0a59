"""The NumPy backend agrees with XLA on values at the edges of their types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.interface import CompileOptions, Program
from plugrt_numpy import plugin
from plugrt_sdk.testing.program_text import ProgramText, named_dtype, typed

NARROW = ("int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float8_e4m3fn", "float8_e8m0fnu")


def results(program: ProgramText) -> list[Any]:
    """Returns the NumPy backend's results."""
    client = plugin.create_client({})
    loaded = client.compile(Program(program.text().encode()), CompileOptions())
    [device] = client.devices()
    put = [client.shards([client.buffer_from_host(x, device)]) for x in program.arguments]
    return [result[0].to_host() for result in loaded.execute(put)]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_real_part_decides_whether_a_complex_number_is_true(dtype: str) -> None:
    program = ProgramText()
    x = program.argument(np.array([0, 1j, 1, -0.0 - 1j, complex(np.nan, 0), 1 + 1j], dtype))
    program.apply("convert", [x], [typed((6,), "bool")])
    [found] = results(program)
    assert found.tolist() == [False, False, True, False, True, True]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_exponentials_less_one_of_numbers_on_the_real_axis_stay_on_it(dtype: str) -> None:
    """Earlier, the result at inf+0j was inf+nanj; the array API standard states inf+0j."""
    inf, nan = np.inf, np.nan
    program = ProgramText()
    parts = [(x, y) for x in (inf, -inf, nan, 0.0, -0.0, 800.0) for y in (0.0, -0.0)]
    x = program.argument(np.array([complex(*p) for p in parts] + [complex(-inf, -2)], dtype))
    program.apply("exponential_minus_one", [x], [x[1]])
    [found] = results(program)
    wanted = [inf, inf, -1, -1, nan, nan, 0, 0, 0, 0, inf if dtype == "complex64" else found[10]]
    np.testing.assert_array_equal(found.real[:10], wanted[:10])
    np.testing.assert_array_equal(found.imag[:12], np.zeros(12))
    assert not np.signbit(found.imag[:12]).any()
    assert found.real[12] == -1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_nan_without_a_mantissa_is_infinity(dtype: str) -> None:
    kind = named_dtype(dtype)
    bits = np.dtype(f"u{kind.itemsize}")
    every = np.iinfo(bits).max
    program = ProgramText()
    x = program.argument(np.array([every >> 1, every, 0], bits).view(kind))
    for mantissa in (0, 2):
        program.apply("reduce_precision", [x], [x[1]],
                      f"exponent_bits = 5 : i32, mantissa_bits = {mantissa} : i32")  # fmt: skip
    without, with_two = results(program)
    assert without.astype("f8").tolist() == [np.inf, np.inf, 0]
    assert np.isnan(with_two.astype("f8")).tolist() == [True, True, False]


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("shape", [(2, 0, 3), (0,), (0, 4)])
def test_constants_without_elements_compile(dtype: str, shape: tuple[int, ...]) -> None:
    """Earlier, the compiler failed, and blamed the caller."""
    program = ProgramText()
    one = "1.0" if "float" in dtype else "1"
    value = program.constant(one, typed(shape, dtype))
    program.apply("reshape", [value], [typed(shape[::-1], dtype)])
    [found] = results(program)
    assert found.shape == shape[::-1]
    assert found.dtype == named_dtype(dtype)


@pytest.mark.parametrize("dtype", ["float4_e2m1fn", "float8_e8m0fnu", "float8_e5m2"])
@pytest.mark.parametrize("total", ["", ", TOTALORDER"])
def test_floats_sort_by_value_wherever_their_sign_is(dtype: str, total: str) -> None:
    """The sign bit of float4 is bit 3 of its byte, and float8_e8m0fnu has no sign bit."""
    kind = named_dtype(dtype)
    whole = np.array([4, 0.5, 2, 1, 8 if "4_" not in dtype else 6, 0.25 if "8" in dtype else 1.5])
    values = whole.astype(kind) if "e8m0" in dtype else np.append(whole, -whole).astype(kind)
    program = ProgramText()
    x, t = program.argument(values), typed((), dtype)
    region = (
        f"^bb0(%x: {t}, %y: {t}): %c = stablehlo.compare LT, %x, %y{total} : ({t}, {t}) -> "
        "tensor<i1> stablehlo.return %c : tensor<i1>"
    )
    program.apply("sort", [x], [x[1]], "dimension = 0 : i64, is_stable = true", [region])
    [found] = results(program)
    np.testing.assert_array_equal(found.astype("f4"), np.sort(values.astype("f4")))
    assert ml_dtypes.finfo(kind).bits <= 8
