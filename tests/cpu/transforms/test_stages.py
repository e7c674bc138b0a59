"""The stages of ahead-of-time compilation: `trace`, `lower`, `compile`, and calling the result.

Differs from JAX: intermediate representation | jaxpr, then StableHLO | StableHLO;
`jit(f).lower(x).as_text()` shows it.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt import (
    ShapeDtypeStruct,
    array_api,
    config,
    device_put,
    devices,
    jit,
    lax,
    monitoring,
    pmap,
)
from plugrt.errors import ArgumentMismatch, ArgumentTypeError, NotAnArray
from plugrt.sharding import SingleDeviceSharding
from support.behaviour import behaviour
from support.compiles import counting
from support.ops import add, mul, total

X = np.arange(3, dtype=np.float32)


@dataclasses.dataclass
class Spec:
    """An object with shape and dtype."""

    shape: Any
    dtype: Any


def affine(x: Any, p: Any, *, scale: Any = 2.0) -> Any:
    return {"out": add(mul(x, p["w"]), p["b"]), "sum": total(mul(x, scale))}


PARAMS = {"w": X, "b": np.float32(1)}


@behaviour(14, "anything with `shape` and `dtype` stands for an array in `lower`")
@pytest.mark.parametrize(
    "x",
    [X, device_put(X), ShapeDtypeStruct((3,), np.float32), ShapeDtypeStruct([3], "float32"),
     Spec((3,), np.float32), Spec([3], "float32")],
    ids=["numpy", "array", "struct", "struct of a list", "object", "object of names"],
)  # fmt: skip
def test_arrays_and_what_stands_for_them(x: Any) -> None:
    compiled = jit(affine).lower(x, PARAMS).compile()
    out = compiled(X, PARAMS)
    np.testing.assert_array_equal(out["out"], X * X + 1)
    assert out["sum"].shape == ()


def test_nothing_is_compiled_or_put_while_lowering() -> None:
    huge = ShapeDtypeStruct((1 << 20, 1 << 20), np.float32)
    with counting() as counts:
        lowered = jit(lambda x: add(x, x)).lower(huge)
    assert "1048576x1048576xf32" in lowered.as_text()
    assert counts[monitoring.COMPILE] == 0
    assert counts[monitoring.TRACE] == 1


def test_text_has_names_and_lines() -> None:
    def named(x: Any, params: Any) -> Any:
        y = array_api.sin(x)
        return array_api.add(y, params["w"])

    lowered = jit(named).lower(X, {"w": X})
    plain = lowered.as_text()
    assert "module @jit_named" in plain
    assert "loc(" not in plain
    assert "stablehlo.sine" in plain
    text = lowered.as_text(debug_info=True)
    first = named.__code__.co_firstlineno
    assert f'test_stages.py":{first + 1}' in text
    assert f'test_stages.py":{first + 2}' in text
    assert "params['w']" in text
    assert "named" in text
    module = lowered.compiler_ir()
    assert "stablehlo.sine" in str(module)


def test_reprs_are_short() -> None:
    big = np.arange(3000.0)
    traced = jit(lambda x: add(x, big)).trace(X[:1])
    assert repr(traced) == "<traced '<lambda>' of (float32[1])>"
    assert repr(traced.lower()) == "<lowered '<lambda>' of (float32[1])>"
    assert len(repr(traced.compile())) < 60


def test_shapes_of_results() -> None:
    f = jit(affine)
    info = f.eval_shape(Spec((3,), ml_dtypes.bfloat16), PARAMS)
    assert info["out"] == ShapeDtypeStruct((3,), np.float32)
    assert info["sum"] == ShapeDtypeStruct((), ml_dtypes.bfloat16)
    assert f.trace(X, PARAMS).out_info["out"].shape == (3,)
    assert f.lower(X, PARAMS).out_info["out"].dtype == np.float32
    struct = ShapeDtypeStruct((2, 3), "int8")
    assert (struct.ndim, struct.size) == (2, 6)


def test_static_arguments_are_left_out_of_the_call() -> None:
    compiled = jit(lambda x, n: mul(x, n), static_argnums=1).lower(X, 3).compile()
    np.testing.assert_array_equal(compiled(X), 3 * X)
    with pytest.raises(ArgumentMismatch, match="static arguments are left out"):
        compiled(X, 3)


@behaviour(14, "a compiled program refuses arguments of other types, and names them")
def test_wrong_types_say_which_and_how() -> None:
    compiled = jit(affine).lower(X, PARAMS).compile()
    with pytest.raises(ArgumentMismatch) as caught:
        compiled(X[:2], {"w": X.astype(np.float64), "b": np.float32(1)})
    text = str(caught.value)
    assert "x: takes float32[3], called with float32[2]" in text
    assert "p['w']: takes float32[3], called with float64[3]" in text
    assert "p['b']" not in text
    assert isinstance(caught.value, TypeError)
    with pytest.raises(NotAnArray, match=r"argument p\['b'\]"):
        compiled(X, {"w": X, "b": "text"})


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c(X),
        lambda c: c(X, PARAMS, X),
        lambda c: c(X, [X, X]),
        lambda c: c(X, {"w": X}),
        lambda c: c(X, PARAMS, scale=3.0),
        lambda c: c(x=X, p=PARAMS),
    ],
)
def test_wrong_structures_show_both(call: Any) -> None:
    compiled = jit(affine).lower(X, PARAMS).compile()
    with pytest.raises(ArgumentMismatch, match=r"structure .*'b'.*called with"):
        call(compiled)


def test_placement_of_compiled_calls() -> None:
    struct = ShapeDtypeStruct((3,), np.float32, SingleDeviceSharding(devices()[3]))
    compiled = jit(lambda x, y: add(x, y)).lower(struct, X).compile()
    out = compiled(X, device_put(X))
    assert (out.device, out.committed) == (devices()[3], True)
    np.testing.assert_array_equal(out, 2 * X)
    with pytest.raises(ArgumentMismatch, match=r"runs on cpu:3.*\n.*y: .*cpu:1"):
        compiled(X, device_put(X, devices()[1]))


def test_analyses() -> None:
    compiled = jit(lambda x: add(mul(x, x), 1)).lower(np.ones(1000, np.float32)).compile()
    assert compiled.cost_analysis()["flops"] >= 1000
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 4000
    assert memory.output_size_in_bytes == 4000
    assert "fusion" in compiled.as_text() or "multiply" in compiled.as_text()
    assert compiled.runtime_executable().addressable_devices[0] is devices()[0]
    assert "<lambda>" in repr(compiled)
    assert compiled.in_tree is not None
    assert compiled.out_tree is not None


def test_stages_without_64_bits() -> None:
    f = jit(lambda x: mul(x, np.ones(3)))
    with config.override(enable_x64=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = f.lower(ShapeDtypeStruct((3,), np.float64)).compile()
        assert compiled(np.ones(3)).dtype == np.float32
        assert f(np.ones(3)).dtype == np.float32
        assert f.eval_shape(np.ones(3)).dtype == np.float32
        assert f(1.5).dtype == np.float32
        with pytest.raises(OverflowError, match="JAX_ENABLE_X64"):
            f(2**40)
    assert f(np.ones(3)).dtype == np.float64


def test_the_error_of_a_compiled_program_in_a_trace_suggests_a_replacement() -> None:
    x = array_api.ones((1, 3))
    jitted = jit(lambda y: y + 1).lower(x).compile()
    mapped = pmap(lambda y: y + 1).lower(x).compile()
    for compiled in (jitted, mapped):
        for outer in (jit(lambda y, c=compiled: c(y)), lambda y, c=compiled: lax.map(c, y[None])):
            with pytest.raises(NotAnArray, match=r"within a traced function.*Fix: call") as error:
                outer(x)
            assert isinstance(error.value, TypeError)  # as JAX raises
        assert jit(lambda y, c=compiled: y + c(x))(x).shape == x.shape  # allowed for known arrays


@pytest.mark.parametrize("shape", [(8.5,), (8.0,), ("2",), 3, None])
def test_a_struct_needs_whole_sizes(shape: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="ShapeDtypeStruct"):
        ShapeDtypeStruct(shape, np.float32)


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("sharding", [None, SingleDeviceSharding(devices()[1])])
def test_a_struct_may_be_weak(shape: tuple[int, ...], sharding: Any) -> None:
    weak = ShapeDtypeStruct(shape, "float32", sharding, weak_type=True)
    strong = ShapeDtypeStruct(shape, "float32", sharding)
    half, double = ShapeDtypeStruct(shape, "float16"), ShapeDtypeStruct(shape, "float64")
    add = jit(lambda a, b: a + b)
    assert add.eval_shape(weak, half).dtype == np.float16
    assert add.eval_shape(strong, half).dtype == np.float32
    one = np.ones(shape, np.float32) if shape else 1.0
    assert add.lower(weak, double).compile()(one, np.ones(shape)).dtype == np.float64
    bools = ShapeDtypeStruct(shape, "bool", sharding, weak_type=True)
    assert jit(lambda a: a).lower(bools).compile()(np.ones(shape, bool)).weak_type is False
