"""The stages of jit, jit over a mesh, shard_map and pmap have the same methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import ShapeDtypeStruct, devices, jit, monitoring, pmap
from plugrt.errors import ArgumentMismatch, InvalidArgument, Unimplemented
from plugrt.layout import Format
from plugrt.sharding import NamedSharding, PartitionSpec, PmapSharding, SingleDeviceSharding
from support.behaviour import behaviour
from support.compiles import counting
from support.platforms import capabilities

FLOAT = np.dtype(np.float32)
X = np.arange(12, dtype=np.float32).reshape(4, 3)
Y = np.ones(3, np.float32)


def f(x: Any, *, y: Any) -> dict[str, Any]:
    return {"more": x * y + 1, "same": x}


def rows() -> NamedSharding:
    return NamedSharding(plugrt.make_mesh((4,), ("x",)), PartitionSpec("x"))


def whole() -> NamedSharding:
    return NamedSharding(rows().mesh, PartitionSpec())


def jitted() -> Any:
    return plugrt.jit(f, donate_argnums=0)


def sharded() -> Any:
    if not capabilities().partitions:
        pytest.skip("the library has no partitions")
    return plugrt.jit(f, donate_argnums=0, out_shardings=rows())


def manual() -> Any:
    if not capabilities().partitions:
        pytest.skip("the library has no partitions")
    spec = PartitionSpec("x")

    def parts(x: Any, *, y: Any) -> Any:
        return plugrt.shard_map(
            lambda x, y: f(x, y=y), mesh=rows().mesh, in_specs=(spec, PartitionSpec()),
            out_specs=spec,
        )(x, y)  # fmt: skip

    return plugrt.jit(parts, donate_argnums=0, out_shardings=rows())


def mapped() -> Any:
    return plugrt.pmap(lambda x, *, y: f(x, y=y[0]), donate_argnums=0)


MAKERS: dict[str, Callable[[], Any]] = {
    "jit": jitted, "sharded jit": sharded, "shard_map": manual, "pmap": mapped,
}  # fmt: skip


def keyword(name: str) -> Any:
    """Returns the keyword argument: pmap maps keywords over their first axis."""
    return np.ones((4, 1, 3), np.float32) if name == "pmap" else Y


def results(name: str) -> Any:
    """Returns the sharding of the results, or None if it is unknown before the call."""
    if name == "pmap":
        return PmapSharding(devices()[:4])
    return None if name == "jit" else rows()


def public(cls: type) -> dict[str, str]:
    """Returns the public methods of a class, with their signatures."""
    return {
        name: str(inspect.signature(member)) if callable(member) else "property"
        for name, member in inspect.getmembers(cls)
        if not name.startswith("_")
    }


def test_the_functions_have_the_same_methods() -> None:
    assert public(type(jit(len))) == public(type(pmap(len)))
    assert {"lower", "trace", "eval_shape", "clear_cache"} <= public(type(pmap(len))).keys()


@behaviour(14, "jit, jit over a mesh, `shard_map` and pmap have the same stages, which all answer")
@pytest.mark.parametrize("name", MAKERS)
def test_each_stage_answers(name: str) -> None:
    function, y = MAKERS[name](), keyword(name)
    traced = function.trace(ShapeDtypeStruct(X.shape, FLOAT), y=y)
    lowered = traced.lower()
    compiled = lowered.compile()
    assert [type(stage).__name__ for stage in (traced, lowered, compiled)] == [
        "Traced", "Lowered", "Compiled"
    ]  # fmt: skip
    lies = results(name)
    for stage in (traced, lowered, compiled):
        said = [(a.shape, a.dtype, a.donated) for a in plugrt.tree.leaves(stage.args_info)]
        assert said == [((4, 3), FLOAT, True), (y.shape, FLOAT, False)]
        assert stage.in_avals == (
            (ShapeDtypeStruct((4, 3), FLOAT),), {"y": ShapeDtypeStruct(y.shape, FLOAT)},
        )  # fmt: skip
        place = lies
        if place is None and stage is compiled:
            place = SingleDeviceSharding(devices()[0])
        assert stage.out_info == dict.fromkeys(
            ("more", "same"), ShapeDtypeStruct((4, 3), FLOAT, place)
        )
        assert stage.donate_argnums == (0,)
        assert (stage.in_tree.num_leaves, stage.out_tree.num_leaves) == (2, 2)
        assert repr(stage).startswith(f"<{type(stage).__name__.lower()} ")
    assert function.eval_shape(X, y=y) == traced.out_info
    assert traced.fun_name in {"f", "parts", "<lambda>"}
    assert "stablehlo.multiply" in lowered.as_text()
    assert "HloModule" in lowered.as_text("hlo")
    assert "loc(" in lowered.as_text(debug_info=True)
    assert lowered.as_dot().startswith("digraph")
    assert "multiply" in str(lowered.compiler_ir())
    assert lowered.cost_analysis()["flops"] > 0
    assert traced.lower(lowering_platforms=("tpu",)).as_text() == lowered.as_text()
    with pytest.raises(ValueError, match="lowered for tpu; it cannot be compiled for"):
        traced.lower(lowering_platforms=("tpu",)).compile()


@behaviour(14, "compiled functions of jit, a mesh, `shard_map` and pmap answer the same questions")
@pytest.mark.parametrize("name", MAKERS)
def test_each_compiled_function_answers(name: str) -> None:
    function, y = MAKERS[name](), keyword(name)
    compiled = function.lower(X, y=y).compile()
    where = compiled.runtime_executable()
    count = 1 if name == "jit" else 4
    assert len(where.addressable_devices) == count
    ran = where.executable
    assert (ran.num_replicas, ran.num_partitions) == {
        "jit": (1, 1), "pmap": (4, 1)}.get(name, (1, 4))  # fmt: skip
    lies = results(name) or SingleDeviceSharding(devices()[0])
    assert compiled.output_shardings == {"more": lies, "same": lies}
    assert len(plugrt.tree.leaves(compiled.input_shardings)) == 2
    if name == "pmap":
        assert compiled.input_shardings == ((lies,), {"y": lies})
    assert all(isinstance(each, Format) for each in plugrt.tree.leaves(compiled.output_formats))
    assert compiled.output_formats["more"].sharding == lies
    assert compiled.input_formats[0][0].sharding == compiled.input_shardings[0][0]
    assert compiled.cost_analysis()
    for question in (
        compiled.as_text, compiled.as_dot, compiled.memory_analysis, compiled.fingerprint,
        compiled.serialize,
    ):  # fmt: skip
        try:
            assert question()
        except Unimplemented:  # a library that lacks it for jit as well
            of_jit = jitted().lower(X, y=Y).compile()
            with pytest.raises(Unimplemented):
                getattr(of_jit, question.__name__)()
    with counting() as counts:
        found = compiled(X, y=y)
    assert counts[monitoring.COMPILE] == counts[monitoring.TRACE] == 0
    np.testing.assert_array_equal(found["more"], X + 1)
    assert found["more"].sharding == lies
    with pytest.raises(
        ArgumentMismatch, match=r"x: takes float32\[4,3\], called with float32\[2,3"
    ):
        compiled(X[:2], y=y)
    with pytest.raises(ArgumentMismatch, match="structure"):
        compiled(X)


@pytest.mark.parametrize("name", MAKERS)
def test_options_of_the_compiler_reach_it(name: str) -> None:
    lowered = MAKERS[name]().lower(X, y=keyword(name))
    with pytest.raises(InvalidArgument, match="no_such_option"):
        lowered.compile({"no_such_option": True})
