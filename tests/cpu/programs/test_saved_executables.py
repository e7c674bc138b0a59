"""Executables that are saved and loaded: alone, and as functions."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax, serialize_executable
from plugrt.errors import (
    ArgumentError,
    ArgumentMismatch,
    ArgumentTypeError,
    DataLoss,
    DeletedBuffer,
    InvalidArgument,
    PjrtError,
    Unimplemented,
)
from support.behaviour import behaviour

X = np.arange(3, dtype=np.float32)


@pytest.fixture(autouse=True)
def saves_executables() -> None:
    """Skips where executables cannot be saved."""
    client = plugrt.get_backend()
    if not client.capabilities.executable_serialization:
        pytest.skip(f"{client.platform} does not declare executable_serialization")


@pytest.fixture(scope="module")
def compiled() -> Any:
    return plugrt.jit(lambda x: x * 2 + 1).lower(X).compile()


@behaviour(
    21,
    "`plugrt.compile` loads an executable that was saved, on any device, and says of one that it "
    "cannot load what it is",
    jax="`client.deserialize_executable`",
)
def test_a_saved_executable_is_loaded(compiled: Any, tmp_path: Path) -> None:
    path = tmp_path / "double.executable"
    path.write_bytes(compiled.serialize())
    for source in (path, path.read_bytes(), plugrt.load_program(path)):
        program = plugrt.compile(source)
        np.testing.assert_array_equal(program(X), X * 2 + 1)
    assert plugrt.load_program(path).format == "executable"
    assert plugrt.load_program(path).name == "double"
    last = plugrt.local_devices()[-1]
    moved = plugrt.compile(path, device=last)
    assert moved.device is last
    assert [*moved.runtime_executable().addressable_devices] == [last]
    assert moved(plugrt.device_put(X, plugrt.devices()[0])).device is last
    again = plugrt.compile(moved.serialize())
    np.testing.assert_array_equal(again(X), X * 2 + 1)
    with pytest.raises(InvalidArgument, match="env_overrides are for the compiler"):
        plugrt.compile(path, env_overrides={"xla_dump_to": ""})
    with pytest.raises((ArgumentMismatch, InvalidArgument), match="1 arguments"):
        again(X, X)  # what the program takes is stated by the executable, or by its backend


def test_what_cannot_be_loaded_is_said(compiled: Any, tmp_path: Path) -> None:
    content = compiled.serialize()
    path = tmp_path / "model.executable"
    path.write_bytes(content[:-3] + b"abc")
    with pytest.raises(PjrtError, match=r"'model' is an executable that .* compiled for .*damaged"):
        plugrt.compile(path)
    path.write_bytes(b'plugrt executable 1\n{"platform": "tpu", "sha256": "0", "abi": null}\nabc')
    says = r"'model' is an executable that a PJRT library compiled for 'tpu'; .* --platform tpu"
    with pytest.raises(PjrtError, match=says):
        plugrt.compile(path)
    with pytest.raises(ArgumentError, match="compiled already"):
        plugrt.programs.compiled_program._compile_ahead(plugrt.load_program(path), None, {})  # type: ignore[arg-type]


def test_an_executable_for_several_devices_says_so() -> None:
    if plugrt.local_device_count() < 2:
        pytest.skip("no second device here")
    summed = plugrt.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    of_two = summed.lower(np.ones((2, 3), np.float32)).compile()
    with pytest.raises(Unimplemented, match=r"runs on 2 devices.*plugrt.serialize_executable"):
        plugrt.compile(of_two.serialize())


# --- functions --------------------------------------------------------------------------------

TABLE = np.arange(2000, dtype=np.float32)


def step(state: Any, i: Any, *, scale: Any) -> Any:
    moved = state["x"] * scale + TABLE[:3]
    return {"state": {"x": moved, "sum": TABLE.sum() + i}, "i": (i + 1, state["y"]), "seven": 7}


@behaviour(
    14,
    "A compiled function is saved and loaded with its containers, the arrays that it closed over, "
    "and results that are arguments or known",
    jax="refuses functions that closed over arrays",
)
def test_a_function_is_saved_and_loaded() -> None:
    state = {"x": X, "y": X + 5}
    compiled = plugrt.jit(step).lower(state, 3, scale=2.0).compile()
    saved, *trees = serialize_executable.serialize(compiled)
    in_tree, out_tree = pickle.loads(pickle.dumps(trees))
    loaded = serialize_executable.deserialize_and_load(saved, in_tree, out_tree)
    expected, found = compiled(state, 3, scale=2.0), loaded(state, 3, scale=2.0)
    assert plugrt.tree.structure(found) == plugrt.tree.structure(expected)
    for wanted, got in zip(plugrt.tree.leaves(expected), plugrt.tree.leaves(found), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))
        assert (got.dtype, got._signature.weak) == (wanted.dtype, wanted._signature.weak)
    assert int(found["seven"]) == 7
    last = plugrt.local_devices()[-1]
    there = serialize_executable.deserialize_and_load(
        saved, in_tree, out_tree, execution_devices=[last]
    )
    assert there(state, 3, scale=2.0)["state"]["x"].device is last
    assert there(state, 3, scale=2.0)["seven"].device is last
    with pytest.raises(ArgumentMismatch, match=r"state\['y'\].*takes float32\[3\]"):
        loaded({"x": X, "y": X[:2]}, 3, scale=2.0)
    with pytest.raises(ArgumentMismatch, match="structure"):
        loaded(state, 3)
    assert "loaded on" in repr(loaded)
    alone = plugrt.compile(loaded.serialize())
    assert "float32[3]" in repr(alone)


def test_a_donated_argument_is_donated_again() -> None:
    compiled = plugrt.jit(lambda x: x + 1, donate_argnums=0).lower(X).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    x = plugrt.device_put(X)
    np.testing.assert_array_equal(loaded(x), X + 1)
    assert x.is_deleted() == plugrt.get_backend().capabilities.donation
    if x.is_deleted():
        with pytest.raises(DeletedBuffer, match="donated to '<lambda>', called at"):
            np.asarray(x)


def test_a_function_that_computes_nothing_is_saved() -> None:
    compiled = plugrt.jit(lambda x: (x, 7)).lower(X).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    found = loaded(X)
    np.testing.assert_array_equal(found[0], X)
    assert int(found[1]) == 7
    with pytest.raises(ArgumentError, match="computes nothing"):
        loaded.serialize()


@behaviour(14, "A compiled pmap is saved and loaded, and takes arguments from wherever they are")
def test_a_pmap_is_saved_and_loaded() -> None:
    if plugrt.local_device_count() < 4:
        pytest.skip("no 4 devices here")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    summed = plugrt.pmap(lambda x, y: (lax.psum(x, "i"), x + y), axis_name="i", in_axes=(0, None))
    compiled = summed.lower(x, X).compile()
    saved, in_tree, out_tree = serialize_executable.serialize(compiled)
    loaded = serialize_executable.deserialize_and_load(saved, in_tree, out_tree)
    total, more = loaded(plugrt.device_put(x), X)
    np.testing.assert_array_equal(total, np.tile(x.sum(0), (4, 1)))
    np.testing.assert_array_equal(more, x + X)
    assert more.sharding == compiled(x, X)[1].sharding
    with pytest.raises(InvalidArgument, match=r"compiled for 4 devices; there are 1"):
        serialize_executable.deserialize_and_load(
            saved, in_tree, out_tree, execution_devices=plugrt.local_devices()[:1]
        )


def test_what_is_no_saved_function_is_refused(compiled: Any) -> None:
    saved, in_tree, out_tree = serialize_executable.serialize(compiled)
    load = serialize_executable.deserialize_and_load
    with pytest.raises(InvalidArgument, match=r"no compiled function.*plugrt.compile"):
        load(compiled.serialize(), in_tree, out_tree)
    for damaged in (saved[:-1], saved[:60], saved.replace(b'"name"', b'"nama"', 1)[:40]):
        with pytest.raises(DataLoss, match="cut off or damaged"):
            load(damaged, in_tree, out_tree)
    two = plugrt.tree.structure((1, 2))
    with pytest.raises(ArgumentError, match=r"1 arguments and 1 results; .* have 1 and 2"):
        load(saved, in_tree, two)
    with pytest.raises(ArgumentTypeError, match=r"takes a compiled function.*lower\(x\)"):
        serialize_executable.serialize(plugrt.jit(xp.sin))  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="deserialize_and_load"):
        load(None, in_tree, out_tree)  # type: ignore[arg-type]


def test_a_function_that_calls_python_is_not_saved() -> None:
    if not plugrt.get_backend().capabilities.host_callbacks:
        pytest.skip(f"{plugrt.get_backend().platform} does not declare host_callbacks")
    shape = plugrt.ShapeDtypeStruct((3,), "float32")
    calling = plugrt.jit(lambda x: plugrt.pure_callback(np.sin, shape, x)).lower(X).compile()
    with pytest.raises(Unimplemented, match="Python functions cannot be saved"):
        serialize_executable.serialize(calling)
