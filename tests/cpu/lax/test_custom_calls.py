from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from plugrt import config, jit, lax
from plugrt.errors import ArgumentError, DtypeError, ShapeError
from plugrt.interface import TensorType
from support.jax_oracle import same

X = np.arange(8, dtype=np.float32).reshape(2, 4)
F32 = TensorType((3, 3), np.dtype(np.float32))


def test_fft_refuses_what_does_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"takes dimensions \[5\] at the end"):
        lax.fft(X, "FFT", (5,))
    with pytest.raises(DtypeError, match="RFFT takes real numbers"):
        lax.fft(X.astype(np.complex64), "RFFT", (4,))
    with pytest.raises(ArgumentError, match="got 'DCT'"):
        lax.fft(X, "DCT", (4,))
    with pytest.raises(ShapeError, match="at most 3"):
        lax.fft(X, "FFT", (2, 4, 1))


@pytest.mark.parametrize("dtype", [np.uint32, np.uint8, np.uint64, np.int32])
def test_rng_bit_generator_makes_bits_and_a_new_key(dtype: Any) -> None:
    key = np.array([1, 2, 3, 4], np.uint32)
    new, bits = lax.rng_bit_generator(key, (100,), dtype)
    assert (new.shape, new.dtype) == ((4,), np.uint32)
    assert (bits.shape, bits.dtype) == ((100,), dtype)
    assert len(set(np.asarray(bits).tolist())) > 50
    again = lax.rng_bit_generator(key, (100,), dtype)[1]
    same(again, bits)
    assert not np.array_equal(np.asarray(lax.rng_bit_generator(new, (100,), dtype)[1]), bits)
    wide = lax.rng_bit_generator(key, (100,))[1]
    with config.override(enable_x64=False):  # the generator's state has 64 bits
        same(lax.rng_bit_generator(key, (100,))[1], wide)


def test_rng_bit_generator_takes_an_algorithm_and_refuses_other_keys() -> None:
    key = np.array([1, 2], np.uint64)
    new, bits = lax.rng_bit_generator(key, (3,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
    assert (new.dtype, bits.shape) == (np.uint64, (3,))
    with pytest.raises(DtypeError, match=r"uint32\[4\] or uint64\[2\]; found uint32\[2\]"):
        lax.rng_bit_generator(np.zeros(2, np.uint32), (3,))
    with pytest.raises(DtypeError, match="makes integers"):
        lax.rng_bit_generator(key, (3,), np.float32)


def test_optimization_barrier_gives_the_tree_back() -> None:
    found = jit(lambda t: lax.optimization_barrier(t))({"a": X, "b": (X[0],)})
    same((found["a"], found["b"][0]), (X, X[0]))
    text = jit(lambda x: lax.optimization_barrier(lax.neg(x))).lower(X).as_text()
    assert "stablehlo.optimization_barrier" in text


def test_custom_call_states_what_it_was_told() -> None:
    def run(x: Any) -> Any:
        return lax.custom_call(
            "mine",
            [x],
            F32,
            has_side_effect=True,
            backend_config={"name": "n", "flag": True, "count": 3, "rate": np.float32(0.5)},
            operand_layouts=[(0, 1)],
            result_layouts=[(1, 0)],
            output_operand_aliases={0: 0},
        )

    text = jit(run).lower(np.zeros((3, 3), np.float32)).as_text()
    for part in (
        "@mine",
        "has_side_effect = true",
        "api_version = 4",
        'name = "n"',
        "flag = true",
        "count = 3 : i64",
        "rate = 5.000000e-01 : f32",
        "operand_layouts = [dense<[0, 1]> : tensor<2xindex>]",
        "operand_index = 0",
    ):
        assert part in text
    old = jit(lambda x: lax.custom_call("old", [x], F32, backend_config="text", api_version=2))
    assert 'backend_config = "text"' in old.lower(X).as_text()


def test_custom_call_refuses_attributes_that_cannot_be_stated() -> None:
    with pytest.raises(ArgumentError, match="attribute 'a' of a custom call is a object"):
        lax.custom_call("f", [X], F32, backend_config={"a": object()})
    with pytest.raises(ArgumentError, match="is a mapping of attributes; got str"):
        lax.custom_call("f", [X], F32, backend_config="text")
    with pytest.raises(ArgumentError, match="with api_version 4 only"):
        lax.custom_call("f", [X], F32, backend_config={}, api_version=2)
    with pytest.raises(ArgumentError, match="operand_layouts and result_layouts together"):
        lax.custom_call("f", [X], F32, operand_layouts=[(0, 1)])


@pytest.mark.parametrize("kind", ["FFT", "ifft", jax.lax.FftType.RFFT, lax.FftType.IRFFT])
def test_fft_matches_jax(kind: Any) -> None:
    x = X.astype(np.complex64) * (1 - 2j) if getattr(kind, "name", "") != "RFFT" else X
    lengths = (6,) if getattr(kind, "name", "") == "IRFFT" else (2, 4)
    name = str(getattr(kind, "name", kind)).upper()
    expected = jax.lax.fft(x, name, lengths)
    same(lax.fft(x, kind, lengths), expected, rtol=1e-5, atol=1e-5)
