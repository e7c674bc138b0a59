"""Exports that JAX writes here: plugrt runs them without JAX, with the results of JAX."""

from __future__ import annotations

import collections
import dataclasses
import functools
from importlib import import_module
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

import plugrt
from plugrt import monitoring, serialize_executable
from plugrt.errors import (
    ArgumentError,
    ArgumentMismatch,
    IntegerOverflow,
    InvalidArgument,
    ProgramError,
    Unimplemented,
    UnknownPlatform,
)
from plugrt.export import ExportedProgram, deserialize
from plugrt.wire.flatbuffers import root_table
from support.behaviour import behaviour
from support.compiles import counting
from support.jax_oracle import jax, same

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
SHARDED = Path(__file__).parents[2] / "nothing/programs/sharded.export"
W = np.arange(6, dtype=np.float32).reshape(3, 2)


def shape(*sizes: Any, dtype: Any = np.float32) -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


def here() -> str:
    """Returns the platform of the default backend, for which JAX exports."""
    return plugrt.get_backend().platform


def exported(function: Any, *args: Any, platforms: Any = None, **options: Any) -> Any:
    """Returns JAX's export of a function, jitted or not, for the default backend's platform."""
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    kwargs = options.pop("kwargs", {})
    return export.export(jitted, platforms=platforms or [here()], **options)(*args, **kwargs)


def needs_devices(count: int) -> None:
    found = plugrt.device_count()
    if found < count:
        pytest.skip(f"no {count} devices here, but {found}")
    if not plugrt.get_backend().capabilities.partitions:
        pytest.skip(f"{here()} does not declare partitions")


def model(params: Any, x: Any, *, scale: Any, unused: Any = None) -> Any:
    y = jnp.tanh(x @ params["w"]) * scale
    return {"y": y, "rest": [y.sum(), None, (x,)]}


@behaviour(
    21,
    "An export is called as its function was, with containers, keywords and arguments that it does "
    "not use, and gives the same containers back",
)
def test_an_export_is_called_as_the_function_was(tmp_path: Path) -> None:
    params = {"w": W, "a": np.int32(1)}
    made = exported(model, params, X, kwargs={"scale": np.float32(2), "unused": X})
    path = tmp_path / "model.export"
    path.write_bytes(made.serialize(vjp_order=1))
    expected = jax.jit(model)(params, X, scale=np.float32(2))
    for source in (made, bytes(made.serialize()), path, str(path)):
        program = plugrt.compile(source)
        found = program(params, plugrt.device_put(X), scale=2, unused=X)
        assert list(found) == ["rest", "y"]
        assert found["rest"][1] is None
        same(found["y"], expected["y"], rtol=1e-6)
        same(found["rest"][2][0], X)
    assert program.exported.has_vjp
    assert not hasattr(program.exported, "vjp")  # plugrt does not read the derivative
    assert program.exported.module_kept_var_idx == (1, 2, 3)
    assert repr(program).startswith("<export 'model' on ")
    assert "kwargs['scale']: float32[]" in repr(program)
    flat = program.call_flat([np.int32(1), W, X, np.float32(2), X])
    same(flat[2], expected["y"], rtol=1e-6)
    assert [*map(str, program.input_types)][:2] == ["int32[]", "float32[3,2]"]
    assert [*map(str, program.output_types)] == ["float32[]", "float32[4,3]", "float32[4,2]"]
    assert len(program.serialize()) > 100
    assert program.runtime_executable().executable.num_partitions == 1


def test_jaxs_method_call_names_the_replacement() -> None:
    found: Any = deserialize(exported(jnp.sin, X).serialize())
    with pytest.raises(AttributeError, match=r"no attribute 'call'.*plugrt.compile\(file\)"):
        found.call(X)
    with pytest.raises(AttributeError, match=r"no attribute 'anything'$"):
        _ = found.anything


@behaviour(21, "What JAX differentiated and exported runs")
def test_a_gradient_runs() -> None:
    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(jnp.sin(x @ w) ** 2)

    gradient = jax.jit(jax.value_and_grad(loss))
    same(plugrt.compile(exported(gradient, W, X))(W, X), gradient(W, X), rtol=1e-5, atol=1e-6)


def test_results_keep_their_containers() -> None:
    made = exported(lambda x: (collections.OrderedDict(b=x, a=[x + 1]), ()), shape(2))
    found = plugrt.compile(made)(np.zeros(2, np.float32))
    assert type(found[0]) is collections.OrderedDict
    assert list(found[0]) == ["b", "a"]
    assert found[1] == ()
    assert plugrt.compile(exported(lambda x: (x,), shape(2)))(np.zeros(2, np.float32))[0].size == 2
    assert plugrt.compile(exported(lambda x: (), shape(2)))(np.zeros(2, np.float32)) == ()


@behaviour(
    21,
    "An export in each version of the calling convention that JAX writes, and keys and dtypes of "
    "every kind in one, run",
)
def test_versions_keys_and_dtypes() -> None:
    for version in (9, 10):
        with jax._src.config.jax_export_calling_convention_version(version):
            made = exported(lambda x: x * 2, shape(3))
        assert deserialize(made.serialize()).calling_convention_version == version
        same(plugrt.compile(made)(np.float32([1, 2, 3])), np.float32([2, 4, 6]))

    def draw(key: Any, flag: Any, half: Any) -> Any:
        return jax.random.uniform(key, (3,)), ~flag, half + 1

    key = jax.random.key(7)
    made = exported(draw, key, shape(2, dtype=bool), shape(2, dtype=jnp.bfloat16))
    half = np.ones(2, jnp.bfloat16)
    found = plugrt.compile(made)(jax.random.key_data(key), np.zeros(2, bool), half)
    same(found[0], jax.random.uniform(key, (3,)))
    assert [str(x.dtype) for x in found] == ["float32", "bool", "bfloat16"]
    assert [str(x.tensor_type) for x in deserialize(made.serialize()).in_avals] == [
        "uint32[2]",
        "bool[2]",
        "bfloat16[2]",
    ]


@behaviour(
    21,
    "An argument that the exported function donates is taken, and says by whom",
    jax="copied: JAX puts an export into another program, which has its own donations",
)
def test_donation_is_recorded() -> None:
    jitted = jax.jit(lambda unused, n, x: (x + 1, n), donate_argnums=2)
    # JAX records no donations for platforms that it does not know.
    anywhere = [export.DisabledSafetyCheck.platform()]
    types = shape(7), shape(), shape(4, 3)
    made = exported(jitted, *types, platforms=["cpu"], disabled_checks=anywhere)
    program = plugrt.compile(made)
    x, n, unused = plugrt.device_put(X), np.float32(1), plugrt.device_put(np.zeros(7, np.float32))
    same(program(unused, n, x)[0], X + 1)
    assert not unused.is_deleted()
    assert x.is_deleted()
    with pytest.raises(plugrt.errors.DeletedBuffer, match="donated to '<lambda>'"):
        x + 1
    same(program(unused, n, X)[0], X + 1)  # a host array is not donated


@behaviour(
    21,
    "An export for several platforms computes what it has for the one that it runs on, and "
    "drops the parts for other platforms",
)
def test_the_platform_is_chosen_for_the_caller() -> None:
    def on_platforms(x: Any) -> Any:
        return jax.lax.platform_dependent(
            x, tpu=lambda x: jnp.linalg.cholesky(x), cuda=lambda x: x + 2, default=lambda x: x + 1
        )

    names = ["cuda", "tpu", here()]
    program = plugrt.compile(exported(on_platforms, shape(4, 4), platforms=names))
    same(program(np.ones((4, 4), np.float32)), np.full((4, 4), 2, np.float32))
    assert "cholesky" not in program.as_text()
    assert "conditional" not in program.as_text()


@behaviour(
    21,
    "An export for other platforms is refused with their names, unless that check was disabled "
    "when it was exported",
)
def test_other_platforms_are_refused() -> None:
    made = exported(lambda x: x + 1, shape(3), platforms=["cuda", "tpu"])
    with pytest.raises(ArgumentError, match=rf"for cuda, tpu; it cannot run on .*{here()}.*Fix"):
        plugrt.compile(made)
    made = exported(lambda x: x + 1, shape(3), platforms=["tpu"])
    with pytest.raises(ArgumentError, match=r"'<lambda>' was exported for tpu;"):
        plugrt.compile(made.serialize())
    for platforms in (["tpu"], ["tpu", "cuda"]):
        check = export.DisabledSafetyCheck.platform()
        made = exported(lambda x: x + 1, shape(3), platforms=platforms, disabled_checks=[check])
        same(plugrt.compile(made)(np.zeros(3, np.float32)), np.ones(3, np.float32))


@pytest.fixture(scope="module")
def symbolic() -> Any:
    """Exports a function of ``x: [a, b]``, ``y: [b, 3]`` and ``z: [2*a]``, where ``a >= 2``."""
    a, b = export.symbolic_shape("a, b", constraints=["a >= 2"])

    def function(x: Any, y: Any, z: Any) -> Any:
        joined = jnp.concatenate([x.reshape(-1), y.reshape(-1)])
        return x @ y, joined, x.shape[0] * 2, jnp.arange(z.shape[0] + x.shape[1])

    made = exported(function, shape(a, b), kwargs={"y": shape(b, 3), "z": shape(2 * a)})
    return jax.jit(function), plugrt.compile(made.serialize())


def _arguments(a: int, b: int) -> dict[str, Any]:
    generator = np.random.default_rng(a * 10 + b)
    return {
        "x": generator.random((a, b), np.float32),
        "y": generator.random((b, 3), np.float32),
        "z": np.zeros(2 * a, np.float32),
    }


@behaviour(
    21,
    "An export with symbolic shapes is compiled for the shapes of its arguments, once for each "
    "combination",
)
def test_symbolic_shapes_are_those_of_the_arguments(symbolic: Any) -> None:
    function, program = symbolic
    compiled = []
    for a, b in ((2, 1), (4, 5), (2, 1), (7, 2)):
        x, y, z = _arguments(a, b).values()
        with counting() as counts:
            found = program(x, y=plugrt.device_put(y), z=z)
        compiled.append(counts[monitoring.COMPILE])
        same(found, function(x, y=y, z=z), rtol=1e-6)
    assert compiled == [1, 1, 0, 1]
    assert "float32[a,b]" in repr(program)
    with pytest.raises(ArgumentError, match=r"symbolic shapes .*a program for each combination"):
        program.serialize()


def test_pytrees_are_bounded() -> None:
    def nested(depth: int) -> bytes:
        tree = functools.reduce(lambda tree, _: (tree,), range(depth - 2), X)
        return bytes(exported(lambda t: jax.tree.leaves(t)[0], tree).serialize())

    assert deserialize(nested(200)).in_tree.num_leaves == 1
    with pytest.raises(ProgramError, match="pytrees nest deeper than 200 levels"):
        deserialize(nested(201))


def test_a_symbolic_export_is_refined_as_jax_refines_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's pass is called with ``enable_shardy`` if the program has Shardy's operations."""
    mlir = import_module("jaxlib._jax").mlir
    refine, told = mlir.refine_polymorphic_shapes, []

    def listen(code: bytes, **options: bool) -> bytes:
        told.append(options["enable_shardy"])
        refined: bytes = refine(code, **options)
        return refined

    monkeypatch.setattr(mlir, "refine_polymorphic_shapes", listen)
    mesh = AbstractMesh((1,), ("x",))
    (n,) = export.symbolic_shape("n")

    def plain(x: Any) -> Any:
        return x + x.shape[0]

    def constrained(x: Any) -> Any:
        return plain(jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("x"))))

    for function in (plain, constrained):
        program = plugrt.compile(exported(function, shape(n)).serialize())
        same(program(np.zeros(3, np.float32)), np.full(3, 3, np.float32))
    assert told == [False, True]


@behaviour(
    21,
    "Sizes that do not fit symbolic shapes are named with the variables and the constraints that "
    "they break",
)
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"y": (6, 3)}, r"kwargs\['y'\].shape\[0\]: b is 6 here, and 5 in args\[0\].shape\[1\]"),
        ({"z": (7,)}, r"kwargs\['z'\].shape\[0\]: takes 2\*a, and no whole number a gives 7"),
        ({"x": (1, 5), "z": (2,)}, r"constraint a >= 2.*but found -1.*args\[0\].shape"),
        ({"x": (4, 0), "y": (0, 3)}, r"Expected value >= 1 for dimension variable 'b'"),
        ({"z": (6,)}, r"kwargs\['z'\].shape\[0\]: a is 3 here, and 4 in args\[0\].shape\[0\]"),
        ({"x": (4,)}, r"args\[0\]: takes float32\[a,b\], called with float32\[4\]"),
        ({"y": (5, 2)}, r"kwargs\['y'\]: takes float32\[b,3\], called with float32\[5,2\]"),
    ],
)
def test_sizes_that_do_not_fit_are_named(symbolic: Any, change: dict[str, Any], says: str) -> None:
    given = _arguments(4, 5) | {k: np.zeros(size, np.float32) for k, size in change.items()}
    with pytest.raises(ArgumentMismatch, match=says) as raised:
        symbolic[1](given.pop("x"), **given)
    assert "docs.jax.dev" not in str(raised.value)
    assert "stablehlo" not in str(raised.value)


class Ordered(jax._src.effects.Effect):
    """An effect that JAX can serialise, since all objects of the class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is Ordered

    def __hash__(self) -> int:
        return 21


@behaviour(
    21,
    "An export with ordered effects has arrays alone as arguments and results, whose donations it "
    "keeps; on several devices it is refused with the reason",
)
def test_ordered_effects_are_kept_by_the_module() -> None:
    jitted = jax.jit(lambda n, x: (n, _double(n, x) + 1), donate_argnums=1)
    anywhere = {"platforms": ["cpu"], "disabled_checks": [export.DisabledSafetyCheck.platform()]}
    (a,) = export.symbolic_shape("a")
    for size in (3, a):
        made = exported(jitted, shape(), shape(size), **anywhere)
        stated = deserialize(made.serialize())
        assert len(stated.ordered_effects) == 1
        program = plugrt.compile(made)
        x = plugrt.device_put(np.float32([1, 2, 3]))
        n, found = program(np.float32(5), x)
        same(found, np.float32([3, 5, 7]))
        assert float(n) == 5
        assert x.is_deleted() == plugrt.get_backend().capabilities.donation
    if plugrt.device_count() > 1:  # JAX exports few effects for this platform
        of_two = dataclasses.replace(stated, nr_devices=2)
        with pytest.raises(Unimplemented, match=r"2 devices with ordered effects .*Ordered"):
            plugrt.compile(of_two)


def _double(n: Any, x: Any) -> Any:
    return _primitive().bind(x)


@functools.cache
def _primitive() -> Any:
    """Returns a primitive that doubles, with an ordered effect; it passes the token on."""
    core, mlir, effects = jax._src.core, jax._src.interpreters.mlir, jax._src.effects
    for kinds in (effects.lowerable_effects, effects.ordered_effects):
        kinds.add_type(Ordered)
    primitive = core.Primitive("double_in_order")
    primitive.def_effectful_abstract_eval(lambda x: (x, {Ordered()}))

    def lower(ctx: Any, x: Any) -> Any:
        ctx.set_tokens_out(ctx.tokens_in)
        return [mlir.hlo.add(x, x)]

    mlir.register_lowering(primitive, lower)
    return primitive


@pytest.fixture(scope="module")
def sharded() -> Any:
    mesh = AbstractMesh((2, 2), ("x", "y"))
    rows, columns = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P(None, ("y", "x")))
    jitted = jax.jit(
        lambda a, b: (a @ b, a + 1, a.sum()),
        in_shardings=(rows, columns),
        out_shardings=(None, rows, None),
    )
    return exported(jitted, shape(4, 8), shape(8, 4))


@behaviour(
    21,
    "An export for several devices runs on as many, with its arguments and results divided as it "
    "says",
)
def test_a_sharded_export_runs_on_its_devices(sharded: Any) -> None:
    needs_devices(4)
    program = plugrt.compile(sharded.serialize())
    devices = plugrt.local_devices()[:4]
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    b = a.reshape(8, 4) / 8
    product, more, total = program(a, plugrt.device_put(b))
    same(product, a @ b)
    same(more, a + 1)
    same(total, a.sum())
    assert more.sharding.devices == tuple(devices)
    shards = {s.device: np.asarray(s.data) for s in more.addressable_shards}
    for i, device in enumerate(devices):
        same(shards[device], (a + 1)[:2] if i < 2 else (a + 1)[2:])
    assert not more.sharding.is_fully_replicated
    assert total.sharding.is_fully_replicated
    same(program(more, b)[0], (a + 1) @ b)  # it has the sharding that the program needs
    same(program(more + 1, b)[1], a + 3)
    assert more.sharding.mesh.axis_names == ("x", "y")
    wrong = np.zeros((5, 8), np.float32)
    with pytest.raises(ArgumentMismatch, match=r"args\[0\]: takes float32\[4,8\]"):
        program(wrong, b)
    if plugrt.get_backend().capabilities.executable_serialization:
        saved = plugrt.compile(program.serialize())
        assert saved.devices == program.devices
        same(saved(a, b)[0], a @ b)
        with_structures = serialize_executable.serialize(program)
        loaded = serialize_executable.deserialize_and_load(*with_structures)
        assert loaded(a, b)[1].sharding == more.sharding


@pytest.mark.parametrize("symbolic", [False, True])
def test_an_export_for_one_device_runs_where_its_arguments_are(symbolic: bool) -> None:
    """Differs from JAX: divided arrays as arguments of an export for one device | the program is
    divided over their devices | `ArgumentMismatch`, which names them.
    """
    [first, second, *others] = plugrt.local_devices()[:3]
    if not others:
        pytest.skip("no 3 devices here")
    shapes = export.symbolic_shape("n") if symbolic else (4,)
    saved = exported(lambda a, b: a + 2 * b, shape(*shapes), shape(*shapes)).serialize()
    program, host = plugrt.compile(saved), np.arange(4, dtype=np.float32)
    there = plugrt.device_put(host, second)
    before = program(host, host)
    for given in ((there, host), (plugrt.jit(lambda: host)(), there), (there, there)):
        for _ in range(2):
            same(made := program(*given), host * 3)
            assert (made.devices(), made.committed) == ({second}, True)
    assert program(host, host).devices() == before.devices() == {program.device}
    mesh = plugrt.sharding.Mesh(np.array([second, *others]), ("i",))
    over = plugrt.sharding.NamedSharding(mesh, plugrt.sharding.PartitionSpec("i"))
    for other, lines in (
        (plugrt.device_put(host, others[0]), 2), (divided := plugrt.device_put(host, over), 2),
    ):  # fmt: skip
        with pytest.raises(ArgumentMismatch, match="committed to several devices") as caught:
            program(there, other)
        assert str(caught.value).count("args[") == lines
    with pytest.raises(ArgumentMismatch, match=r"(?s)several devices.*\n  args\[0\]: on Named"):
        program(divided, host)
    named = plugrt.compile(saved, device=first)
    for other in (plugrt.device_put(host, others[0]), divided):
        assert named(there, other).devices() == {first}


def test_a_compiled_export_describes_its_arguments_and_results(sharded: Any) -> None:
    given = exported(lambda a, *, b: {"sum": a + b}, shape(4), kwargs={"b": shape()})
    program = plugrt.compile(given.serialize())
    [[a], kwargs] = program.in_avals
    assert (a.shape, kwargs["b"].shape, kwargs["b"].dtype) == ((4,), (), np.float32)
    here = plugrt.sharding.SingleDeviceSharding(program.device)
    assert program.input_shardings == ((here,), {"b": here})
    assert program.output_shardings == {"sum": here}
    assert program.out_info["sum"] == plugrt.ShapeDtypeStruct.like(program(X[:, 0], b=1)["sum"])
    assert program.input_formats[0][0].sharding == program.output_formats["sum"].sharding == here
    [symbol] = export.symbolic_shape("n")
    symbolic = plugrt.compile(exported(lambda a: a + 1, shape(symbol)).serialize())
    assert symbolic.in_tree == plugrt.tree.structure(((X,), {}))
    for name in ("in_avals", "out_info", "input_shardings", "output_formats"):
        with pytest.raises(ArgumentError, match="has symbolic shapes"):
            getattr(symbolic, name)
    needs_devices(4)
    over = plugrt.compile(sharded.serialize())
    (rows, columns), _ = over.input_shardings
    assert (rows.shard_shape((4, 8)), columns.shard_shape((8, 4))) == ((2, 8), (8, 1))
    results = over(np.ones((4, 8), np.float32), np.ones((8, 4), np.float32))
    assert over.out_info == tuple(map(plugrt.ShapeDtypeStruct.like, results))


def test_weak_results_are_those_of_jaxs_export() -> None:
    weak = jax.ShapeDtypeStruct((), np.float32, weak_type=True)
    for f in (lambda a: a + 1, lambda a: a * np.float32(2)):
        given = exported(f, weak)
        read = export.deserialize(given.serialize())  # JAX serialises no weak types
        for ours, theirs in ((given, given), (given.serialize(), read)):
            program = plugrt.compile(ours)
            expected = [aval.weak_type for aval in (*theirs.in_avals, *theirs.out_avals)]
            found = [aval.weak_type for aval in (program.in_avals[0][0], program.out_info)]
            assert (found, program(2.0).weak_type) == (expected, expected[1])
            if plugrt.get_backend().capabilities.executable_serialization:
                saved = serialize_executable.serialize(program)
                loaded = serialize_executable.deserialize_and_load(*saved)
                assert loaded(2.0).weak_type == loaded.out_info.weak_type == expected[1]


def test_an_export_follows_to_another_backend_that_it_is_for() -> None:
    try:
        other = plugrt.devices("numpy")[0]
    except UnknownPlatform:
        pytest.skip("no numpy backend here")
    there = plugrt.device_put(X, other)
    unchecked = [export.DisabledSafetyCheck.platform()]
    anywhere = exported(lambda a: a + 1, shape(4, 3), disabled_checks=unchecked)
    assert plugrt.compile(anywhere)(there).devices() == {other}
    for program in (
        plugrt.compile(anywhere, backend=plugrt.default_backend()),
        plugrt.compile(exported(lambda a: a + 1, shape(4, 3))),
    ):
        with pytest.raises(ArgumentMismatch, match=r"(?s)elsewhere: .*args\[0\]: on .*numpy:0"):
            program(there)
    moving = plugrt.compile(exported(lambda a: a + 1, shape(4, 3)), device=plugrt.devices()[0])
    same(moving(there), X + 1)


@behaviour(
    21,
    "An export for several devices reshards arrays on these devices, and refuses those that are "
    "committed to others, with the ids of both",
)
def test_arguments_of_a_sharded_export_are_placed_or_refused(sharded: Any) -> None:
    """Differs from JAX: devices of an export for several | those of its arguments |
    the first ones of the backend.
    """
    needs_devices(5)
    program = plugrt.compile(sharded.serialize())
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    b = a.reshape(8, 4) / 8
    devices = plugrt.local_devices()

    def over(chosen: Any, *spec: Any) -> Any:
        mesh = plugrt.sharding.Mesh(np.array(chosen), ("i",))
        return plugrt.sharding.NamedSharding(mesh, plugrt.sharding.PartitionSpec(*spec))

    for taken in (over(devices[:4]), over(devices[3::-1], "i"), over(devices[:4], None, "i")):
        product, more, _ = program(plugrt.device_put(a, taken), plugrt.device_put(b, taken))
        same(product, a @ b)
        assert more.sharding.devices == tuple(devices[:4])
    for other, ids in (
        (devices[0], [0]), (devices[4], [4]), (over(devices[1:5]), [1, 2, 3, 4]),
        (over(devices[:2], "i"), [0, 1]),
    ):  # fmt: skip
        with pytest.raises(ArgumentMismatch, match="committed to others") as caught:
            program(a, plugrt.device_put(b, other))
        first, *wrong = str(caught.value).splitlines()
        assert f"runs on the devices {[d.id for d in devices[:4]]} of " in first
        assert [line.split(":")[0] for line in wrong] == ["  args[1]"]
        assert wrong[0].endswith(f"the devices {[devices[i].id for i in ids]}")


@behaviour(
    21,
    "Where the file of an export says nothing of arguments and results, they lie as `shard_map`, "
    "constraints and the compiler say",
    jax="the same, within another program",
)
def test_shardings_that_an_export_does_not_state() -> None:
    needs_devices(4)
    mesh = AbstractMesh((2, 2), ("x", "y"))
    mapped = jax.shard_map(
        lambda a, b: (jax.lax.psum(a, "x") + b, a), mesh=mesh, in_specs=(P("x", "y"), P("y")),
        out_specs=(P(None, "y"), P("x", "y")),
    )  # fmt: skip

    def f(unused: Any, a: Any, b: Any) -> Any:
        return *mapped(a, b), b * 2

    a, b = np.arange(32, dtype=np.float32).reshape(4, 8), np.ones(8, np.float32)
    # JAX derives the number of devices from the stated shardings, here a result's.
    jitted = jax.jit(f, out_shardings=(None, None, NamedSharding(mesh, P("x"))))
    program = plugrt.compile(exported(jitted, shape(4, 3), shape(4, 8), shape(8)))
    assert program.exported.in_shardings == (None, None, None)
    for args in ((X, a, b), (plugrt.device_put(X), plugrt.device_put(a), plugrt.device_put(b))):
        total, same_a, twice = program(*args)
        same(total, a[:2] + a[2:] + b)
        same(same_a, a)
        same(twice, b * 2)
        assert twice.sharding.shard_shape((8,)) == (4,)
    if here() != "numpy":  # which divides what has a stated sharding
        assert same_a.sharding.shard_shape((4, 8)) == (2, 4)
        taken = program._program.launch.in_shardings
        assert [s.shard_shape(t.shape) for s, t in zip(taken, (X, a, b), strict=True)][:2] == [
            (4, 3), (2, 4),
        ]  # fmt: skip


@behaviour(
    21,
    "An export of a `shard_map` over an abstract mesh without a sharding, whose file says one "
    "device, runs on the devices of the mesh",
    jax="the same within a program for as many devices; on one device an error of XLA",
)
def test_a_shard_map_over_an_abstract_mesh_without_stated_shardings() -> None:
    needs_devices(4)
    mesh = AbstractMesh((4,), ("x",))
    mapped = jax.shard_map(
        lambda a, b: (jax.lax.psum(a, "x"), a * b), mesh=mesh, in_specs=(P("x"), P()),
        out_specs=(P(), P("x")),
    )  # fmt: skip
    program = plugrt.compile(exported(jax.jit(mapped), shape(8), shape(2)))
    assert program.exported.nr_devices == 1
    assert len(program.devices) == 4
    a, b = np.arange(8, dtype=np.float32), np.float32([1, -1])
    for args in ((a, b), (plugrt.device_put(a), plugrt.device_put(b))):
        total, product = program(*args)
        same(total, a.reshape(4, 2).sum(0))
        same(product, a * np.tile(b, 4))
    blob = exported(jax.jit(mapped), shape(8), shape(2))
    with pytest.raises(ArgumentError, match=r"has a shard_map over 4 devices; it cannot run on"):
        plugrt.compile(blob, device=plugrt.local_devices()[1])
    many = jax.shard_map(
        lambda a: a, mesh=AbstractMesh((4096,), ("x",)), in_specs=P("x"), out_specs=P("x")
    )
    with pytest.raises(ArgumentError, match=r"over 4096 devices; .* has \d+ here"):
        plugrt.compile(exported(jax.jit(many), shape(4096)))


def test_a_shard_map_over_a_mesh_of_one_device_runs_on_one() -> None:
    mesh = AbstractMesh((1,), ("x",))
    twice = jax.shard_map(lambda a: a * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    program = plugrt.compile(exported(jax.jit(twice), shape(4)))
    assert len(program.devices) == 1
    same(program(np.ones(4, np.float32)), np.full(4, 2, np.float32))


def test_a_sharded_export_with_symbolic_shapes_for_several_platforms_runs() -> None:
    needs_devices(4)
    (a,) = export.symbolic_shape("a")
    rows = NamedSharding(AbstractMesh((2, 2), ("x", "y")), P("x"))
    jitted = jax.jit(lambda x: (x * 2, x.sum()), in_shardings=rows, out_shardings=(rows, None))
    program = plugrt.compile(exported(jitted, shape(2 * a, 3), platforms=["cuda", here()]))
    twice, total = program(X)
    same(twice, X * 2)
    same(total, X.sum(), atol=1e-6)
    assert twice.sharding.shard_shape((4, 3)) == (2, 3)


def test_a_sharded_export_of_an_older_jax_runs() -> None:
    needs_devices(4)
    blob = SHARDED.read_bytes()
    stated = dataclasses.replace(deserialize(blob), platforms=(here(),))  # its platform is cpu
    program = plugrt.compile(stated)
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    same(program(x, x.reshape(8, 4)), x @ x.reshape(8, 4))
    [rows, _] = program._program.launch.in_shardings
    assert rows.shard_shape((4, 8)) == (2, 8)
    wrong = dataclasses.replace(stated, in_shardings=(b"\x08\x03", None))
    with pytest.raises(ProgramError, match="damaged, or cannot be placed on these devices"):
        plugrt.compile(wrong)


def test_a_mesh_of_other_devices_is_refused(sharded: Any) -> None:
    blob = bytes(sharded.serialize())
    at: Any = root_table(blob)._find(18)
    assert blob[at : at + 4] == b"\x04\0\0\0"
    with pytest.raises(ProgramError, match=r"damaged.*is for 8 devices, and has a mesh of 4"):
        deserialize(blob[:at] + b"\x08\0\0\0" + blob[at + 4 :])


def test_devices_that_are_missing_are_named(sharded: Any) -> None:
    with pytest.raises(ArgumentError, match=r"for 4 devices; it cannot run on .* alone.*backend="):
        plugrt.compile(sharded, device=plugrt.devices()[0])
    mesh = AbstractMesh((4096,), ("x",))
    jitted = jax.jit(lambda x: x + 1, in_shardings=NamedSharding(mesh, P("x")))
    with pytest.raises(ArgumentError, match=r"for 4096 devices; .* has \d+ here.*JAX_NUM_CPU"):
        plugrt.compile(exported(jitted, shape(4096)))


@pytest.fixture(scope="module")
def doubled() -> Any:
    return plugrt.compile(exported(lambda x, y: x + y, shape(3), shape(3, dtype=np.int32)))


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((X,), r"takes args\[0\]: float32\[3\], args\[1\]: int32\[3\], in the structure.*\(\*,\)"),
        ((np.ones(4, np.float32), np.ones(3, np.int32)), r"args\[0\]: takes float32\[3\], called "),
        ((np.ones(3, np.float32), np.ones(3, np.int8)), r"args\[1\]: takes int32\[3\], called "),
        (([1.0, 2.0, 3.0], np.ones(3, np.int32)), r"in the structure \(args, kwargs\)"),
    ],
)
def test_wrong_arguments_are_named(doubled: Any, args: Any, says: str) -> None:
    with pytest.raises(ArgumentMismatch, match=says):
        doubled(*args)


def test_an_export_that_contradicts_its_module_is_refused() -> None:
    """The export has the description of one function, and the module of another."""
    one = plugrt.load_program(exported(lambda x: x + 1, shape(3)))
    two = plugrt.load_program(exported(lambda x: (x, x), shape(4)))
    assert isinstance(one, ExportedProgram)
    assert isinstance(two, ExportedProgram)
    three = plugrt.load_program(exported(lambda x: (x, x), shape(3)))
    more = ExportedProgram(three.code, "mlir", "more", exported=one.exported)
    with pytest.raises(ProgramError, match=r"damaged: its module returns float32\[3\], float32"):
        plugrt.compile(more)
    mixed = ExportedProgram(two.code, "mlir", "mixed", exported=one.exported)
    with pytest.raises(ProgramError, match=r"damaged: its module takes float32\[4\]; it states"):
        plugrt.compile(mixed)


def test_options_of_compile_are_checked(sharded: Any) -> None:
    made = exported(lambda x: x + 1, shape(3))
    with pytest.raises(InvalidArgument, match="a device or a backend"):
        plugrt.compile(made, device=plugrt.devices()[0], backend="cpu")
    last = plugrt.devices()[-1]
    assert plugrt.compile(made, device=last)(np.zeros(3, np.float32)).device is last
    with pytest.raises(plugrt.errors.StructureError, match=r"'mine', which is not registered here"):
        plugrt.compile(_with_unknown_container())


def _with_unknown_container() -> Any:
    class Mine(collections.namedtuple("Mine", "a")):
        pass

    export.register_namedtuple_serialization(Mine, serialized_name="mine")
    return exported(lambda x: Mine(x), shape(3)).serialize()


@behaviour(
    21,
    "A Python scalar is an argument if its value fits: no part of it is left out without a word",
    jax="the same; `jax.export` refuses scalars of other kinds as well",
)
def test_scalars_that_do_not_fit() -> None:
    made = exported(lambda n, x: n + x, jax.ShapeDtypeStruct((), np.int32), shape(3))
    program = plugrt.compile(made.serialize())
    same(program(True, np.float32([1, 2, 3])), np.float32([2, 3, 4]))
    for wrong in (5.5, 1j):
        with pytest.raises(ArgumentMismatch, match=r"args\[0\]: takes int32\[\], called with"):
            program(wrong, np.zeros(3, np.float32))
    with pytest.raises(IntegerOverflow, match=r"args\[0\] of export .* 1099511627776 .* int32"):
        program(2**40, np.zeros(3, np.float32))
