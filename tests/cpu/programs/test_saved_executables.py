"""Executables that are saved and loaded: alone, and as functions."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from jax.experimental import serialize_executable as of_jax

import plugrt
from plugrt import array_api as xp
from plugrt import lax, random, serialize_executable
from plugrt.cli.run import command as run
from plugrt.errors import (
    ArgumentError,
    ArgumentMismatch,
    ArgumentTypeError,
    DataLoss,
    DeletedBuffer,
    FailedPrecondition,
    InvalidArgument,
    PjrtError,
    Unimplemented,
)
from plugrt.layout import Format, Layout
from plugrt.programs import saved_function
from plugrt.programs.saved_header import (
    SavedHeader,
    SavedLaunch,
    SavedLayout,
    SavedSharding,
    SavedType,
)
from plugrt.sharding import Mesh, NamedSharding, SingleDeviceSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.fake_client import FakeClient
from support.fake_topology import FakeTopology
from support.jax_oracle import jax

X = np.arange(3, dtype=np.float32)
A = np.arange(16, dtype=np.float32).reshape(8, 2)


@pytest.fixture(autouse=True)
def saves_executables() -> None:
    """Skips if the backend cannot save executables."""
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
        again(X, X)  # the executable or its backend counts the arguments


def test_executables_that_cannot_be_loaded_state_the_reason(compiled: Any, tmp_path: Path) -> None:
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
        plugrt.compile(plugrt.load_program(path), topology=FakeTopology(1, {}))


def test_an_executable_for_several_devices_says_so() -> None:
    if plugrt.local_device_count() < 2:
        pytest.skip("no second device here")
    summed = plugrt.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    of_two = summed.lower(np.ones((2, 3), np.float32)).compile()
    with pytest.raises(Unimplemented, match=r"runs on 2 devices.*plugrt.serialize_executable"):
        plugrt.compile(of_two.serialize())


def test_devices_of_another_backend_are_refused() -> None:
    saved = serialize_executable.serialize(plugrt.jit(lambda x: x + 1).lower(X).compile())
    devices = FakeClient("elsewhere").devices()
    with pytest.raises(ArgumentError, match=r"^elsewhere:0 is no device of '"):
        serialize_executable.deserialize_and_load(
            *saved, backend=plugrt.get_backend(), execution_devices=devices
        )


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
        assert (got.dtype, got.weak_type) == (wanted.dtype, wanted.weak_type)
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


def test_random_keys_are_arguments_results_and_constants_of_a_saved_function() -> None:
    own, key = random.key(5, impl="rbg"), random.key(1)

    def draw(key: Any, x: Any) -> Any:
        return random.split(key), random.uniform(own) + x, own, random.wrap_key_data(own_words), key

    own_words = random.key_data(random.key(7))
    compiled = plugrt.jit(draw).lower(key, X).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    for found, expected in zip(loaded(key, X), compiled(key, X), strict=True):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert repr(found) == repr(expected)
    with pytest.raises(ArgumentMismatch, match="key<rbg>"):
        loaded(own, X)


def test_a_function_that_computes_nothing_is_saved() -> None:
    compiled = plugrt.jit(lambda x: (x, 7)).lower(X).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    found = loaded(X)
    np.testing.assert_array_equal(found[0], X)
    assert int(found[1]) == 7
    with pytest.raises(ArgumentError, match="computes nothing"):
        loaded.serialize()


@behaviour(14, "A compiled pmap is saved and loaded, and refuses arguments that are elsewhere")
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
    for call in (compiled, loaded):
        with pytest.raises(ArgumentMismatch, match="compiled for other shardings"):
            call(plugrt.device_put(x, plugrt.local_devices()[3]), X)
    with pytest.raises(InvalidArgument, match=r"compiled for 4 devices; there are 1"):
        serialize_executable.deserialize_and_load(
            saved, in_tree, out_tree, execution_devices=plugrt.local_devices()[:1]
        )


def four_devices() -> list[Any]:
    """Returns four devices of the default backend, not in the order of their ids."""
    if plugrt.local_device_count() < 4 or not plugrt.get_backend().capabilities.partitions:
        pytest.skip("no 4 devices here, or none that a program can be divided over")
    have = plugrt.local_devices()
    return [have[i] for i in (3, 1, 0, 2)]


@behaviour(
    14,
    "A function compiled over a mesh is saved with its shardings and the ids of its devices, and "
    "loaded on those, or on as many others",
    jax="needs devices of the same ids",
)
def test_a_function_over_a_mesh_is_saved_and_loaded() -> None:
    mesh = Mesh(np.reshape(four_devices(), (2, 2)), ("x", "y"))
    rows, both = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(("y", "x")))
    columns = NamedSharding(mesh, P(None, "y"))

    def step(a: Any, b: Any, c: Any) -> Any:
        divided = plugrt.with_sharding_constraint(a * 2, columns)
        return {"a": a, "ab": a @ b.T, "c": c + TABLE[:1], "twice": divided, "seven": 7}

    a, b = np.arange(32, dtype=np.float32).reshape(2, 8, 2)
    compiled = plugrt.jit(step, in_shardings=(rows, both, None)).lower(a, b, X).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    expected, found = compiled(a, b, X), loaded(a, plugrt.device_put(b, both), X)
    for name, wanted in expected.items():
        np.testing.assert_array_equal(found[name], wanted)
        assert found[name].sharding == wanted.sharding, name
    assert loaded._program.launch.everywhere == compiled._program.launch.everywhere
    same = plugrt.device_put(a, NamedSharding(mesh, P("x", None)))  # divided as by P("x")
    np.testing.assert_array_equal(loaded(same, b, X)["ab"], a @ b.T)
    for program in (compiled, loaded):
        with pytest.raises(ArgumentMismatch, match=r"argument a: .*'y'.*; taken in .*'x'"):
            program(plugrt.device_put(a, columns), b, X)


STAGE = (
    "in_tree", "out_tree", "out_info", "input_shardings", "output_shardings", "input_formats",
    "output_formats",
)  # fmt: skip


def test_a_loaded_function_describes_itself_as_the_saved_one() -> None:
    """Same as JAX: `in_avals`, `out_info`, `input_shardings` and so on of a compiled function that
    was saved.
    """

    def f(a: Any, *, b: Any) -> Any:
        return {"sum": a + b, "b": b}

    compiled = plugrt.jit(f).lower(A, b=2.0).compile()
    saved = serialize_executable.serialize(compiled)
    loaded = serialize_executable.deserialize_and_load(*saved)
    assert loaded.in_avals == compiled.in_avals
    for name in STAGE:
        assert getattr(loaded, name) == getattr(compiled, name), name
    theirs = jax.jit(f).lower(A, b=2.0).compile()
    theirs = of_jax.deserialize_and_load(*of_jax.serialize(theirs))
    for found, wanted in (
        (loaded.in_avals, theirs.in_avals), (loaded.out_info, theirs.out_info),
    ):  # fmt: skip
        types = [[(x.shape, x.dtype) for x in jax.tree.leaves(each)] for each in (found, wanted)]
        assert types[0] == types[1]
    weak = [[x.weak_type for x in jax.tree.leaves(c.in_avals)] for c in (loaded, theirs)]
    assert weak == [[False, True], [False, True]]
    flat = plugrt.compile(saved[0])
    assert flat.in_avals == (tuple(plugrt.tree.leaves(compiled.in_avals)), {})
    assert flat.input_shardings == (tuple(plugrt.tree.leaves(compiled.input_shardings)), {})


def test_a_loaded_function_over_a_mesh_has_its_shardings() -> None:
    mesh = Mesh(four_devices(), ("x",))
    rows = NamedSharding(mesh, P("x"))
    compiled = plugrt.jit(lambda a: (a, a.sum()), in_shardings=rows).lower(A).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    assert loaded.input_shardings == ((rows,), {})
    for name in STAGE:
        assert getattr(loaded, name) == getattr(compiled, name), name
    pmapped = plugrt.pmap(lambda a: a + 1).lower(A[:4]).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(pmapped))
    assert loaded.in_avals == pmapped.in_avals
    for name in STAGE:
        assert getattr(loaded, name) == getattr(pmapped, name), name


def test_a_function_over_a_mesh_is_loaded_on_given_devices() -> None:
    mesh = Mesh(four_devices(), ("x",))
    doubled = plugrt.jit(lambda a: (2 * a, a), in_shardings=NamedSharding(mesh, P("x")))
    saved = serialize_executable.serialize(doubled.lower(np.arange(8)).compile())
    load = serialize_executable.deserialize_and_load
    given = load(*saved, execution_devices=plugrt.local_devices()[::-1])
    assert given(np.arange(8))[0].sharding.devices == mesh.flat_devices
    with pytest.raises(InvalidArgument, match="compiled for 4 devices; there are 3"):
        load(*saved, execution_devices=plugrt.local_devices()[:3])
    if plugrt.local_device_count() < 8:
        pytest.skip("no 8 devices here")
    others = tuple(plugrt.local_devices()[4:8])
    elsewhere = load(*saved, execution_devices=others)
    for result in elsewhere(np.arange(8)):
        assert result.sharding == NamedSharding(Mesh(others, ("x",)), P("x"))
    np.testing.assert_array_equal(elsewhere(np.arange(8))[0], 2 * np.arange(8))


@behaviour(14, "A function compiled for layouts is saved with them, the compiler's choices too")
def test_a_function_with_layouts_is_saved_and_loaded() -> None:
    if not plugrt.get_backend().capabilities.layouts:
        pytest.skip(f"{plugrt.get_backend().platform} does not declare layouts")
    here = SingleDeviceSharding(plugrt.local_devices()[0])
    fortran = Format(Layout((1, 0)), here)
    turned = plugrt.jit(
        lambda x: (x.T * 2, x), in_shardings=fortran, out_shardings=Format(Layout.AUTO)
    )
    compiled = turned.lower(plugrt.ShapeDtypeStruct(A.shape, A.dtype)).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    x = plugrt.device_put(A, fortran)
    for found, wanted in zip(loaded(x), compiled(x), strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.format == wanted.format
    np.testing.assert_array_equal(loaded(A)[0], A.T * 2)
    with pytest.raises(ArgumentMismatch, match=r"other layouts.*input_formats"):
        loaded(plugrt.device_put(A, here))


def test_another_format_and_what_cannot_be_saved(compiled: Any) -> None:
    saved, in_tree, out_tree = serialize_executable.serialize(compiled)
    # Up to format 4 parts of pmap lacked the mapped axis, and its shardings had their own class.
    for number in (b"2", b"4", b"44", b""):
        older = saved.replace(b"function 6\n", b"function %s\n" % number, 1)
        said = rf"another version of plugrt, in format '{number.decode()}', .* reads '6'; compile"
        with pytest.raises(FailedPrecondition, match=said):
            serialize_executable.deserialize_and_load(older, in_tree, out_tree)


def test_the_format_has_a_number_for_each_set_of_fields() -> None:
    """If the fields change, the number must too: errors about older files name it."""
    fields = [
        f"{record.__name__}.{name}: {annotation}"
        for record in (SavedHeader, SavedLaunch, SavedType, SavedLayout)
        for name, annotation in record.__annotations__.items()
    ]
    digest = hashlib.sha256("\n".join([*fields, str(SavedSharding)]).encode()).hexdigest()[:16]
    assert (saved_function.SAVED.version, digest) == (6, "916b62718bbb5768")


def test_damaged_saved_functions_are_refused(compiled: Any) -> None:
    saved, in_tree, out_tree = serialize_executable.serialize(compiled)
    load = serialize_executable.deserialize_and_load
    with pytest.raises(InvalidArgument, match="no compiled function that plugrt"):
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


@behaviour(
    21,
    "`plugrt.compile` and `plugrt run` take what `serialize_executable` wrote as well, with the "
    "leaves of its arguments",
    jax="only with the structures of arguments and results, which are apart from the bytes",
)
def test_a_saved_function_is_loaded_without_its_structures(tmp_path: Path) -> None:
    compiled = plugrt.jit(lambda d, k: {"a": d["x"] * 2, "b": d["x"] + k}).lower({"x": X}, 1.0)
    saved, _, _ = serialize_executable.serialize(compiled.compile())
    path = tmp_path / "double.function"
    path.write_bytes(saved)
    assert plugrt.load_program(path).name == "double"
    function = plugrt.compile(path, device=plugrt.devices()[-1])
    assert isinstance(function, serialize_executable.LoadedFunction)
    assert function.device == plugrt.devices()[-1]
    assert [t.shape for t in function.input_types] == [X.shape, ()]
    assert [t.shape for t in function.output_types] == [X.shape, X.shape]
    doubled, more = function(X, 3.0)
    np.testing.assert_array_equal(doubled, X * 2)
    np.testing.assert_array_equal(more, X + 3)
    shown = tmp_path / "x.npy", tmp_path / "k.npy"
    for file, array in zip(shown, (X, np.float32(3)), strict=True):
        np.save(file, array)
    inputs = [word for file in shown for word in ("--input", str(file))]
    done = CliRunner().invoke(run, [str(path), *inputs, "--json"], catch_exceptions=False)
    assert [out["value"] for out in json.loads(done.output)["outputs"]] == [
        [0.0, 2.0, 4.0], [3.0, 4.0, 5.0],
    ]  # fmt: skip
    with pytest.raises(ArgumentMismatch, match=r"takes 2 arguments .*; called with 1"):
        function.call_flat([X])
    with pytest.raises(InvalidArgument, match="'double' is an executable already"):
        plugrt.compile(path, env_overrides={"xla_a": True})
    path.write_bytes(saved[:-1])
    with pytest.raises(DataLoss, match=r"'double' is a compiled function .* cut"):
        plugrt.compile(path)
