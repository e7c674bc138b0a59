"""The properties of a program at the stages of ahead-of-time compilation, and its devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import ShapeDtypeStruct, devices, get_backend, jit, monitoring, pmap
from plugrt import array_api as xp
from plugrt.errors import ArgumentError, ArgumentTypeError, PlugrtError
from plugrt.interface import TensorType
from plugrt.sharding import SingleDeviceSharding
from support.behaviour import behaviour
from support.compiles import counting
from support.platforms import capabilities

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.ones((3, 2), np.float32)
FLOAT = np.dtype(np.float32)
HELD = plugrt.device_put(Y)


def f(x: Any, y: Any, *, scale: Any = 2.0) -> Any:
    return {"product": xp.sin(x) @ y, "scaled": y * scale}


@behaviour(14, "`args_info`, `in_avals` and `donate_argnums` describe the arguments at each stage")
def test_stages_describe_their_arguments() -> None:
    traced = jit(f, donate_argnums=1).trace(ShapeDtypeStruct(X.shape, FLOAT), Y, scale=3)
    lowered = traced.lower()
    for stage in (traced, lowered, lowered.compile()):
        (x, y), named = stage.args_info
        assert [(a.shape, a.dtype, a.donated) for a in (x, y, named["scale"])] == [
            ((2, 3), FLOAT, False), ((3, 2), FLOAT, True), ((), np.int32, False),
        ]  # fmt: skip
        assert stage.in_avals == (
            (ShapeDtypeStruct((2, 3), FLOAT), ShapeDtypeStruct((3, 2), FLOAT)),
            {"scale": ShapeDtypeStruct((), np.int32, weak_type=True)},
        )
        assert stage.donate_argnums == (1,)
        place = SingleDeviceSharding(devices()[0]) if type(stage).__name__ == "Compiled" else None
        assert stage.out_info == {
            "product": ShapeDtypeStruct((2, 2), FLOAT, place),
            "scaled": ShapeDtypeStruct((3, 2), FLOAT, place),
        }
        assert (stage.in_tree.num_leaves, stage.out_tree.num_leaves) == (3, 2)
    assert traced.fun_name == "f"


@behaviour(14, "a compiled program states the shardings of its arguments and results")
def test_shardings_of_a_compiled_program() -> None:
    there = SingleDeviceSharding(devices()[1])
    compiled = jit(f).lower(ShapeDtypeStruct(X.shape, FLOAT, there), Y).compile()
    assert compiled.input_shardings == ((there, there), {})
    assert compiled.output_shardings == {"product": there, "scaled": there}


@behaviour(14, "`as_text` and `compiler_ir` give StableHLO and HLO, and refuse other dialects")
def test_dialects() -> None:
    lowered = jit(f).lower(X, Y)
    assert "stablehlo.sine" in lowered.as_text()
    assert lowered.as_text(None) == lowered.as_text("stablehlo") == lowered.as_text()
    hlo = lowered.as_text("hlo")
    assert hlo.startswith("HloModule jit_f, ")
    assert " sine(" in hlo
    assert __file__ not in hlo
    assert "test_stage_info.py" in lowered.as_text("hlo", debug_info=True)
    computation = lowered.compiler_ir("hlo")
    assert computation.as_hlo_text() == hlo
    assert str(lowered.compiler_ir()) == str(lowered.compiler_ir("stablehlo")) == lowered.as_text()


@behaviour(14, "a dialect that is not there is a ValueError that names it")
@pytest.mark.parametrize("dialect", ["mhlo", "", 3])
def test_wrong_dialects(dialect: Any) -> None:
    lowered = jit(f).lower(X, Y)
    for method in (lowered.as_text, lowered.compiler_ir):
        with pytest.raises(ArgumentError, match=f"unknown dialect: {dialect!r};") as error:
            method(dialect)
        assert isinstance(error.value, ValueError)


@behaviour(14, "`cost_analysis` counts before and after compilation; a product has 2 m n k flops")
def test_costs_of_both_stages() -> None:
    lowered = jit(lambda x, y: x @ y).lower(np.ones((4, 8), FLOAT), np.ones((8, 16), FLOAT))
    before, after = lowered.cost_analysis(), lowered.compile().cost_analysis()
    assert before["flops"] == after["flops"] == 2 * 4 * 8 * 16
    assert before["bytes accessed"] == 4 * (4 * 8 + 8 * 16 + 4 * 16)


TRIVIAL: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[TensorType], int]] = {
    "an argument": (lambda x: x, (X,), [TensorType((2, 3), FLOAT)], 24),
    "one of two": (lambda x, y: (y, y), (X, Y), [TensorType((3, 2), FLOAT)] * 2, 24),
    "a number": (lambda: 7, (), [TensorType((), np.dtype(np.int32))], 0),
    "what it closed over": (
        lambda x: (HELD, x), (1.0,),
        [TensorType((3, 2), FLOAT), TensorType((), FLOAT)], 4,
    ),
}  # fmt: skip


@behaviour(14, "a program that computes nothing answers all questions, too, and can be saved")
@pytest.mark.parametrize("name", TRIVIAL)
def test_trivial_programs_answer(name: str) -> None:
    function, args, types, nbytes = TRIVIAL[name]
    lowered = jit(function).lower(*args)
    with counting() as compiled_so_far:
        compiled = lowered.compile()
        expected = jit(function)(*args)
        plugrt.tree.map(np.testing.assert_array_equal, compiled(*args), expected)
    assert compiled_so_far[monitoring.COMPILE] == 0
    assert compiled.as_text()
    assert isinstance(compiled.cost_analysis(), Mapping)
    assert lowered.cost_analysis().get("flops", 0) == 0
    assert compiled.memory_analysis().argument_size_in_bytes == nbytes
    assert list(compiled.runtime_executable().executable.output_types) == types
    if capabilities().executable_serialization:
        assert get_backend().deserialize_executable(compiled.serialize()) is not None


@behaviour(14, "a pmapped function's stages say the same of its arguments and results")
def test_stages_of_pmap() -> None:
    count = len(devices())
    traced = pmap(lambda x, y: x + y).trace(np.ones((count, 3), FLOAT), np.ones((count, 3), FLOAT))
    compiled = traced.lower().compile()
    assert compiled.in_avals == ((ShapeDtypeStruct((count, 3), FLOAT),) * 2, {})
    first = compiled.args_info[0][0]
    assert (first.shape, first.dtype, first.donated) == ((count, 3), FLOAT, False)
    assert compiled.out_info.shape == (count, 3)
    assert compiled.output_shardings == compiled.out_info.sharding
    assert "stablehlo.add" in traced.lower().as_text()
    assert traced.lower().cost_analysis()["flops"] == 3


@behaviour(
    14,
    "`lower(lowering_platforms=…)` gives the module for devices that are not here, and compiles "
    "for no others",
    jax="JAX lowers per platform, and says so where it compiles",
)
def test_lowering_for_other_platforms() -> None:
    traced = jit(f).trace(X, Y)
    lowered = traced.lower(lowering_platforms=("tpu", "gpu"))
    assert lowered.as_text() == traced.lower().as_text()
    with pytest.raises(ArgumentError, match=r"lowered for tpu, gpu; it cannot be compiled for .*"):
        lowered.compile()
    here = get_backend()
    for name in (here.platform, next(iter(plugrt.backends()))):
        compiled = traced.lower(lowering_platforms=("tpu", name)).compile()
        np.testing.assert_allclose(compiled(X, Y)["scaled"], 2 * Y)


@pytest.mark.parametrize("platforms", ["tpu", (), (3,), [None]])
def test_wrong_platforms(platforms: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"such as \('tpu',\); got"):
        jit(f).trace(X, Y).lower(lowering_platforms=platforms)


@pytest.mark.parametrize("platforms", [3, object()])
def test_platforms_that_are_no_names(platforms: Any) -> None:
    with pytest.raises(PlugrtError, match="lower"):
        jit(f).trace(X, Y).lower(lowering_platforms=platforms)
