"""`xla_computation`: the program of a function as HLO, as jax 0.4.20 documented it.

The expected results are JAX's, which has no such function since 0.4.31.
"""

from __future__ import annotations

import re
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import ShapeDtypeStruct, lax, xla_computation
from plugrt import array_api as xp
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    NotAnArray,
    PlugrtError,
    ShapeError,
    StructureError,
    UnboundAxis,
    UnknownPlatform,
)
from plugrt.interface import Program
from plugrt.wire.hlo_proto import read_module
from support.behaviour import behaviour

Pair = namedtuple("Pair", "a b")  # a user's container
MATRIX = np.ones((4, 4), np.float32)


def f(x: Any) -> Any:
    return xp.sin(xp.cos(x))


def operations(text: str) -> list[str]:
    """Returns the operations of HLO text, in order, except parameters and the tuple of results."""
    found = re.findall(r"^ +(?:ROOT )?\S+ = .*?\S+ ([a-z][a-z-]*)\(", text, re.M)
    return [op for op in found if op not in ("parameter", "tuple")]


def groups(text: str) -> list[str]:
    return re.findall(r"replica_groups=(\{\{.*?\}\})", text)


@behaviour(
    15,
    "the documentation's sin(cos(x)) gives a parameter, a cosine, a sine and a tuple of it",
    jax="JAX 0.4.31 removed `xla_computation`; 0.4.20 did the same",
)
def test_the_example_of_the_documentation() -> None:
    computation = xla_computation(f)(3.0)
    assert computation.as_hlo_text().strip() == (
        "HloModule xla_computation_f, entry_computation_layout={(f32[])->(f32[])}\n\n"
        "ENTRY main.1 {\n"
        "  Arg_0.1 = f32[] parameter(0)\n"
        "  cosine.1 = f32[] cosine(Arg_0.1)\n"
        "  sine.1 = f32[] sine(cosine.1)\n"
        "  ROOT tuple.1 = (f32[]) tuple(sine.1)\n"
        "}"
    )


@behaviour(
    15,
    "anything with `shape` and `dtype` is an example argument: a scalar gives the same program",
    jax="JAX 0.4.31 removed `xla_computation`; 0.4.20 did the same",
)
def test_a_scalar_by_shape_and_dtype() -> None:
    scalar = SimpleNamespace(shape=(), dtype=np.dtype(np.float32))
    assert xla_computation(f)(scalar).as_hlo_text() == xla_computation(f)(3.0).as_hlo_text()


@behaviour(
    15,
    "`axis_env=[('i', 4)]` binds an axis: psum's replica_groups are {{0,1,2,3}}",
    jax="JAX 0.4.31 removed `xla_computation`; 0.4.20 did the same",
)
def test_a_collective_over_one_axis() -> None:
    computation = xla_computation(lambda x: x - lax.psum(x, "i"), axis_env=[("i", 4)])(2)
    text = computation.as_hlo_text()
    assert groups(text) == ["{{0,1,2,3}}"]
    assert operations(text) == ["add", "all-reduce", "subtract"]
    assert "{(s32[])->(s32[])}" in text


@behaviour(
    15,
    "over axes i=4 and j=2, psum has the groups of rows, of columns, and all eight",
    jax="JAX 0.4.31 removed `xla_computation`; 0.4.20 did the same",
)
def test_a_collective_over_two_axes() -> None:
    def g(x: Any) -> Any:
        return lax.psum(x, "i"), lax.psum(x, "j"), lax.psum(x, ("i", "j"))

    text = xla_computation(g, axis_env=[("i", 4), ("j", 2)])(5.0).as_hlo_text()
    assert groups(text) == [
        "{{0,2,4,6},{1,3,5,7}}", "{{0,1},{2,3},{4,5},{6,7}}", "{{0,1,2,3,4,5,6,7}}"
    ]  # fmt: skip


@behaviour(
    15,
    "text, bytes, a Graphviz graph, the program's shape, its name and its hash are to be had",
    jax="JAX 0.4.31 removed `xla_computation`; 0.4.20 did the same",
)
def test_forms_of_a_program() -> None:
    computation = xla_computation(lambda x, y: x @ y)(MATRIX, MATRIX)
    shape = computation.program_shape()
    assert [s.dimensions() for s in shape.parameter_shapes()] == [(4, 4), (4, 4)]
    assert [s.dimensions() for s in shape.result_shape().tuple_shapes()] == [(4, 4)]
    code = computation.as_serialized_hlo_module_proto()
    assert bytes(read_module(Program(code, "hlo"))) == code
    assert b"xla_computation__lambda_" in code
    graph = computation.as_hlo_dot_graph()
    assert graph.lstrip().startswith("digraph G {")
    assert "dot" in graph
    assert computation.name() == "xla_computation__lambda_"
    assert computation.hash() == xla_computation(lambda x, y: x @ y)(MATRIX, MATRIX).hash()
    assert computation.get_hlo_module().name == computation.name()
    assert "xla_computation__lambda_" in repr(computation)


def test_large_constants_are_printed_if_asked_for() -> None:
    table = np.arange(64, dtype=np.float32)
    computation = xla_computation(lambda x: x + table)(table)
    assert "63" not in computation.as_hlo_text()
    assert " 63" in computation.as_hlo_text(print_large_constants=True)
    assert " 63" in computation.as_hlo_text(True)


@behaviour(
    15,
    "`tuple_args` says whether the arguments are one tuple; None: where there are more than 100",
    jax="same; the default was None in JAX 0.3",
)
def test_one_tuple_above_a_hundred_arguments() -> None:
    def first(*xs: Any) -> Any:
        return xs[0]

    def parameters(count: int, **options: Any) -> int:
        computation = xla_computation(first, **options)(*[1.0] * count)
        return len(computation.program_shape().parameter_shapes())

    assert [parameters(100), parameters(101)] == [100, 101]
    assert [parameters(count, tuple_args=None) for count in (100, 101)] == [100, 1]
    assert [parameters(101, tuple_args=False), parameters(2, tuple_args=True)] == [101, 1]
    text = xla_computation(first, tuple_args=True)(1.0, 2).as_hlo_text()
    assert "{((f32[], s32[]))->(f32[])}" in text


@behaviour(
    15,
    "`return_shape` gives the results' shapes and dtypes beside the program, in their structure",
    jax="JAX 0.4.31 removed `xla_computation`; 0.4.20 did the same",
)
def test_shapes_of_results() -> None:
    """Results as shapes and dtypes.

    Differs from JAX: `named_shape` of the shapes of `xla_computation(…, return_shape=True)` | until
    0.4.30 the sizes of the `axis_env`'s axes that a value varies over | not there: no type here
    states axes.
    """
    _, shape = xla_computation(lambda x: {"a": x, "b": (x.sum(), 3)}, return_shape=True)(MATRIX)
    assert shape == {
        "a": ShapeDtypeStruct((4, 4), np.float32),
        "b": (ShapeDtypeStruct((), np.float32), ShapeDtypeStruct((), np.int32)),
    }
    assert not hasattr(shape["a"], "named_shape")


@behaviour(
    15,
    "static arguments are part of the program",
    jax="JAX 0.4.31 removed `xla_computation`; 0.4.20 did the same",
)
@pytest.mark.parametrize("static", [1, (1,), [1], -1])
def test_static_arguments(static: Any) -> None:
    def repeat(x: Any, n: int) -> Any:
        for _ in range(n):
            x = x * x
        return x

    text = xla_computation(repeat, static_argnums=static)(2.0, 3).as_hlo_text()
    assert operations(text) == ["multiply"] * 3
    assert "{(f32[])->(f32[])}" in text


@behaviour(
    15,
    "a donated argument is aliased to a result, also where arguments are one tuple",
    jax="JAX 0.4.31 removed `xla_computation`; 0.4.20 did the same",
)
@pytest.mark.parametrize(
    ("tupled", "where"), [(False, "(0, {}, may-alias)"), (True, "(0, {0}, may-alias)")]
)
def test_donated_arguments_are_aliased(tupled: bool, where: str) -> None:
    make = xla_computation(lambda x, y: x + y, donate_argnums=(0,), tuple_args=tupled)
    text = make(MATRIX, MATRIX).as_hlo_text()
    assert f"input_output_alias={{ {{0}}: {where} }}" in text


@behaviour(
    15,
    "`in_parts` and `out_parts` divide parameters and results over devices, by pytree prefixes",
    jax="JAX 0.4.20 refuses both; this is what `sharded_jit`'s documentation says",
)
def test_parts_of_arguments_and_results() -> None:
    def g(x: Any, y: Any) -> Any:
        return x + y["a"], {"b": x}

    make = xla_computation(g, in_parts=((2, 1), None), out_parts=((1, 2), (2, 1)))
    text = make(MATRIX, {"a": MATRIX, "c": 1.0}).as_hlo_text()
    parameters = dict(re.findall(r"parameter\((\d)\), sharding=(\{.*\})", text))
    divided, whole = "{devices=[2,1]0,1}", "{replicated}"
    assert parameters == {"0": divided, "1": whole, "2": whole}
    assert re.search(r"ROOT .*sharding=\{\{devices=\[1,2\]0,1\}, \{devices=\[2,1\]0,1\}\}", text)
    everything = xla_computation(lambda x, y: x + y, in_parts=(2, 2), tuple_args=True)
    tupled = everything(MATRIX, MATRIX).as_hlo_text()
    assert "parameter(0), sharding={{devices=[2,2]0,1,2,3}, {devices=[2,2]0,1,2,3}}" in tupled


@behaviour(
    15,
    "named tuples are containers, in arguments and results",
    jax="JAX 0.4.31 removed `xla_computation`; 0.4.20 did the same",
)
def test_named_tuples_are_containers() -> None:
    make = xla_computation(lambda p: Pair(p.b, p.a + 1), return_shape=True)
    computation, shape = make(Pair(1.0, MATRIX))
    assert "{(f32[], f32[4,4]{1,0})->(f32[4,4]{1,0}, f32[])}" in computation.as_hlo_text()
    assert shape == Pair(ShapeDtypeStruct((4, 4), np.float32), ShapeDtypeStruct((), np.float32))


@behaviour(
    15,
    "`backend` may name a platform whose device is not here",
    jax="JAX 0.4.31 removed `xla_computation`; 0.4.20 took any text",
)
@pytest.mark.parametrize("backend", ["tpu", "gpu", "cuda", "rocm", "cpu", None])
def test_a_backend_that_is_not_here(backend: str | None) -> None:
    text = xla_computation(f, backend=backend)(3.0).as_hlo_text()
    assert operations(text) == ["cosine", "sine"]


@pytest.mark.parametrize("instantiate", [None, True, False])
def test_constant_results_are_always_there(instantiate: bool | None) -> None:
    make = xla_computation(lambda x: (x, 7), instantiate_const_outputs=instantiate)
    text = make(1.0).as_hlo_text()
    assert "->(f32[], s32[])" in text
    assert operations(text) == ["constant"]


@behaviour(
    15,
    "every argument stays a parameter, and arrays that the function closes over are constants",
    jax="JAX 0.4.31 removed `xla_computation`; 0.4.20 did the same",
)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "bfloat16"])
def test_unused_arguments_and_closures(dtype: str) -> None:
    captured = plugrt.device_put(np.ones(3, plugrt.ShapeDtypeStruct((), dtype).dtype))
    text = xla_computation(lambda x, unused: (captured, x))(1.0, 2.0).as_hlo_text()
    assert len(re.findall(r"parameter\(\d\)", text)) == 2
    assert operations(text) in (["constant"], ["constant", "broadcast"])
    large = np.arange(5000, dtype=np.float32)
    text = xla_computation(lambda x: x + large)(large).as_hlo_text()
    assert len(re.findall(r"parameter\(\d\)", text)) == 1


def test_keywords_and_jitted_functions() -> None:
    make = xla_computation(plugrt.jit(lambda x, *, y: x - y))
    assert "{(f32[], s32[])->(f32[])}" in make(1.0, y=2).as_hlo_text()
    assert xla_computation(f).__name__ == "f"
    assert xla_computation(f).__wrapped__ is f  # type: ignore[attr-defined]


@behaviour(
    15,
    "wrong options are refused when `xla_computation` is called, by name",
    jax="JAX 0.4.20 refused some of them when the result was called, and took others",
)
@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"axis_env": ("i", 4)}, ArgumentTypeError, r"such as \[\('i', 4\)\]; got \('i', 4\)"),
        ({"axis_env": {"i": 4}}, ArgumentTypeError, "pairs"),
        ({"axis_env": [("i", 2.5)]}, ArgumentTypeError, "pairs"),
        ({"axis_env": [("i", 0)]}, ArgumentError, "axis 'i' of size 0"),
        ({"axis_env": [("i", 2), ("i", 3)]}, ArgumentError, "axis 'i' twice"),
        ({"backend": "tpuu"}, UnknownPlatform, "'tpuu' is not a platform .* tpu"),
        ({"backend": 3}, ArgumentTypeError, "name of a platform; got 3"),
        ({"tuple_args": "yes"}, ArgumentTypeError, "tuple_args .* True, False or None"),
        ({"return_shape": None}, ArgumentTypeError, "return_shape .* True or False"),
        ({"static_argnums": 5}, ArgumentError, "argument 5"),
        ({"static_argnums": 0, "donate_argnums": 0}, ArgumentError, "static and donated"),
    ],
    ids=lambda x: str(x) if isinstance(x, dict) else "",
)  # fmt: skip
def test_wrong_options(options: dict[str, Any], error: type[PlugrtError], says: str) -> None:
    with pytest.raises(error, match=says):
        xla_computation(lambda x: x, **options)


@pytest.mark.parametrize("fun", [3, None, "f"])
def test_values_that_are_no_functions_are_refused(fun: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="xla_computation takes a function; got"):
        xla_computation(fun)


def test_wrong_arguments_and_results() -> None:
    with pytest.raises(NotAnArray, match="argument x is 'text'"):
        xla_computation(lambda x: x)("text")
    with pytest.raises(NotAnArray, match="returned 'text'"):
        xla_computation(lambda x: "text")(1.0)
    with pytest.raises(UnboundAxis, match="'k'"):
        xla_computation(lambda x: lax.psum(x, "k"), axis_env=[("i", 2)])(1.0)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"in_parts": ((2,), None)}, ShapeError, r"in_parts divides float32\[4,4\] into \(2,\)"),
        ({"in_parts": ([2, 1], None)}, ArgumentTypeError, "in_parts takes None or a tuple"),
        ({"in_parts": ((2, 0), None)}, ArgumentTypeError, "positive integers"),
        ({"in_parts": ((2, 1),)}, StructureError, "in_parts=.* is not a pytree prefix"),
        ({"out_parts": {"z": None}}, StructureError, "out_parts=.* is not a pytree prefix"),
        ({"in_parts": ((2, 1), (4, 1))}, ArgumentError, r"\(2, 1\) over 2, \(4, 1\) over 4"),
        ({"in_parts": (2, 1), "out_parts": (2, 2)}, ArgumentError, "different numbers of devices"),
    ],
    ids=lambda x: str(x) if isinstance(x, dict) else "",
)
def test_wrong_parts(options: dict[str, Any], error: type[PlugrtError], says: str) -> None:
    with pytest.raises(error, match=says):
        xla_computation(lambda x, y: x + y, **options)(MATRIX, MATRIX)
