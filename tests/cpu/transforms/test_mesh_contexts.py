"""The mesh in the context: `plugrt.set_mesh`, `use_mesh`, ``with mesh:``, and specs of it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices, get_backend, lax, monitoring
from plugrt.errors import ArgumentError, DeviceMismatch, FailedPrecondition, InvalidArgument
from plugrt.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    get_abstract_mesh,
    get_mesh,
    use_abstract_mesh,
    use_mesh,
)
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.compiles import counting
from support.jax_oracle import jax

A = np.arange(32, dtype=np.float32).reshape(8, 4)
NOTHING = Mesh(None, ())
BOUND: dict[str, Callable[[Mesh], AbstractContextManager[Any]]] = {
    "set_mesh": plugrt.set_mesh,
    "use_mesh": use_mesh,
}


def grid() -> Mesh:
    return plugrt.make_mesh((4, 2), ("x", "y"))


def line() -> Mesh:
    return Mesh(devices()[:4], "x")


def over(*entries: Any) -> NamedSharding:
    return NamedSharding(grid(), P(*entries))


RUNS: dict[str, Callable[[Any], Any]] = {
    "jit of host data": lambda m: m.jit(lambda v: v + 1)(A),
    "jit of an argument passed through": lambda m: m.jit(lambda v: v)(A),
    "an operator on an uncommitted array": lambda m: m.device_put(A) + 1,
    "specs of arguments": lambda m: m.jit(lambda v: v * 2, in_shardings=_spec(m, "x"))(A),
    "specs of results": lambda m: m.jit(lambda v: v * 2, out_shardings=_spec(m, None, "y"))(A),
    "a constraint": lambda m: m.jit(lambda v: _constrain(m)(v, _spec(m, "y")) * 2)(A),
    "a constraint outside": lambda m: _constrain(m)(A, _spec(m, ("x", "y"))),
    "device_put": lambda m: m.device_put(A, _spec(m, "x", "y")),
    "shard_map": lambda m: m.shard_map(
        lambda v: v + 1, in_specs=_spec(m, "x"), out_specs=_spec(m, "x")
    )(A),
    "compiled ahead of time": lambda m: m.jit(lambda v: v - 1).lower(A).compile()(A),
}


def _spec(module: Any, *entries: Any) -> Any:
    return (plugrt.sharding if module is plugrt else jax.sharding).PartitionSpec(*entries)


def _constrain(module: Any) -> Any:
    return (module if module is plugrt else jax.lax).with_sharding_constraint


@behaviour(105, "within `set_mesh`, programs run on the mesh, and specs by themselves mean it")
@pytest.mark.parametrize("name", RUNS)
def test_programs_run_on_the_mesh(name: str) -> None:
    auto = jax.sharding.AxisType.Auto
    there = jax.sharding.Mesh(
        np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"), axis_types=(auto, auto)
    )
    with jax.set_mesh(there):
        expected = RUNS[name](jax)
    for context in BOUND.values():
        with context(grid()):
            found = RUNS[name](plugrt)
        np.testing.assert_array_equal(found, np.asarray(expected))
        assert (found.sharding.mesh, found.committed) == (grid(), True)
        ours = found.sharding.devices_indices_map(found.shape)
        theirs = expected.sharding.devices_indices_map(expected.shape)
        # The NumPy backend divides only arrays with a stated sharding.
        chosen = name in ("specs of arguments", "a constraint", "shard_map")
        if get_backend().platform != "numpy" or not chosen:
            assert [*ours.values()] == [*theirs.values()]


@behaviour(105, "a context of a mesh ends with its block, is one thread's, and can be nested")
def test_a_mesh_context_is_nested_and_local_to_a_thread() -> None:
    found: list[Any] = []

    def look() -> None:
        found.append((get_mesh(), (xp.asarray(1.0) + 1).sharding.num_devices))

    with contextlib.suppress(ZeroDivisionError), plugrt.set_mesh(grid()):
        look()
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        with use_mesh(line()):
            look()
        with contextlib.suppress(KeyError), line():
            assert plugrt.device_put(A, P("x")).sharding.num_devices == 4
            look()  # only specs refer to the inner mesh
            raise KeyError
        with plugrt.set_mesh(None):
            look()
        with use_abstract_mesh(AbstractMesh((4, 2), ("a", "b"))):  # has no devices
            assert (get_mesh(), get_abstract_mesh().axis_names) == (grid(), ("a", "b"))
        assert plugrt.device_put(A, P("x")).sharding.num_devices == 8
        lowered = plugrt.jit(lambda v: v - 1).lower(A)
        raise ZeroDivisionError
    look()
    assert lowered.compile()(A).sharding.num_devices == 8  # it runs over the mesh of its lowering
    assert found == [
        (grid(), 8), (NOTHING, 1), (line(), 4), (grid(), 8), (NOTHING, 1), (NOTHING, 1),
    ]  # fmt: skip
    try:
        plugrt.set_mesh(line())  # without a block
        with plugrt.debug_nans():
            look()
        look()
    finally:
        plugrt.set_mesh(None)
    assert found[-2:] == [(line(), 4)] * 2
    mesh = grid()
    with mesh as entered, mesh:
        assert entered is mesh
    with pytest.raises(InvalidArgument, match="no mesh in the context"):
        plugrt.device_put(A, P("x"))


@behaviour(
    105,
    "in `with mesh:`, specs by themselves mean the mesh; where programs run does not change",
    jax="accepts them in `with_sharding_constraint` alone, and warns that the form is deprecated",
)
def test_with_mesh() -> None:
    f = plugrt.jit(lambda v: v * 2, in_shardings=P("x"), out_shardings=P(None, "y"))
    with grid():
        assert f(A).sharding == over(None, "y")
        assert plugrt.with_sharding_constraint(A, P("x", "y")).sharding == over("x", "y")
        assert (xp.asarray(A) + 1).sharding.num_devices == 1
        assert get_mesh() == NOTHING
        compiled = f.lower(A).compile()
    with Mesh(devices()[5:6], "x"):
        one = plugrt.jit(lambda v: v + 1, in_shardings=P("x"))(A)
        assert one.sharding.devices == (devices()[5],)
    assert compiled(A).sharding == over(None, "y")
    with pytest.raises(InvalidArgument, match=r"jit's in_shardings has P\('x',\) alone"):
        f(A)


@behaviour(105, "a traced function knows the shape of the mesh; another mesh is another trace")
def test_get_abstract_mesh() -> None:
    seen: list[AbstractMesh] = []

    @plugrt.jit
    def f(v: Any) -> Any:
        seen.append(get_abstract_mesh())
        return plugrt.with_sharding_constraint(v + len(seen), P("x"))

    with counting() as counts:
        for mesh in (grid(), line(), grid()):
            with plugrt.set_mesh(mesh):
                f(A)
    assert counts[monitoring.TRACE] == 2
    assert seen == [grid().abstract_mesh, line().abstract_mesh]
    inner = plugrt.shard_map(
        lambda v: (seen.append(get_abstract_mesh()), lax.psum(v, "x"))[1],
        mesh=line(), in_specs=P("x"), out_specs=P(),
    )  # fmt: skip
    inner(A)
    manual = line().update_axis_types({"x": AxisType.Manual})
    assert (seen[2], get_abstract_mesh()) == (manual, NOTHING.abstract_mesh)


PJIT_RUNS: dict[str, Callable[[Any, Any], Any]] = {
    "host data": lambda m, pjit: pjit(lambda v: v + 1)(A),
    "an argument passed through": lambda m, pjit: pjit(lambda v: v)(m.device_put(A)),
    "no arguments": lambda m, pjit: pjit(lambda: m.device_put(A) * 2)(),
    "specs of arguments": lambda m, pjit: pjit(lambda v: v * 2, (_spec(m, "x"),))(A),
    "None for results": lambda m, pjit: pjit(lambda v: v * 2, _spec(m, "x"), None)(A),
    "None for an argument": lambda m, pjit: pjit(lambda v: v * 2, (None,), _spec(m, "y"))(A),
    "a constraint": lambda m, pjit: pjit(lambda v: _constrain(m)(v, _spec(m, "y")) * 2)(A),
    "ahead of time": lambda m, pjit: pjit(lambda v: v - 1).lower(A).compile()(A),
    "within jit": lambda m, pjit: m.jit(lambda v: pjit(lambda u: u + 1)(v))(A),
    "jit": lambda m, pjit: m.jit(lambda v: v + 1)(A),
}


@pytest.mark.parametrize("name", PJIT_RUNS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pjit_runs_on_the_mesh_of_with(name: str) -> None:
    """Same as JAX: `pjit` in `with mesh:`, where `jit` runs as without."""
    from jax.experimental.pjit import pjit

    shape = np.array(jax.devices(), object).reshape(4, 2)
    with grid():
        ours = PJIT_RUNS[name](plugrt, plugrt.pjit)
    with jax.sharding.Mesh(shape, ("x", "y")):
        theirs = PJIT_RUNS[name](jax, pjit)
    np.testing.assert_array_equal(ours, theirs)
    assert ours.sharding.num_devices == theirs.sharding.num_devices
    assert ours.sharding.is_fully_replicated == theirs.sharding.is_fully_replicated


def test_pjit_follows_the_context() -> None:
    f = plugrt.pjit(lambda v: v * 2, out_shardings=None)
    places = []
    for mesh in (None, grid(), line(), None, grid()):
        with mesh or contextlib.nullcontext():
            places.append(f(A).sharding)
    assert [s.num_devices for s in places] == [1, 8, 4, 1, 8]
    assert places[1] == NamedSharding(grid(), P())
    committed = plugrt.device_put(A, devices()[3])
    assert f(committed).devices() == {devices()[3]}
    with grid(), pytest.raises(DeviceMismatch, match=r"the mesh in the context \(with mesh:\)"):
        plugrt.pjit(lambda v: v * 2)(committed)
    placed = plugrt.pjit(lambda v: v + 1, device=devices()[0])
    np.testing.assert_array_equal(placed(A), A + 1)
    with grid(), pytest.raises(ArgumentError, match="leave one of them out"):
        placed(A)
    with pytest.raises(ArgumentError, match="pjit takes a device or a backend"):
        plugrt.pjit(lambda v: v, device=devices()[0], backend="cpu")


@behaviour(105, "`in_shardings` and `out_shardings` of a jitted function within another hold there")
def test_shardings_of_a_nested_function() -> None:
    inner = plugrt.jit(lambda v, w: (v + w, v), in_shardings=over("x"), out_shardings=over("y"))
    outer = plugrt.jit(lambda v: inner(v, 2 * v)[0] - 1)
    assert outer(A).sharding.devices == grid().flat_devices
    np.testing.assert_array_equal(outer(A), 3 * A - 1)
    assert outer.lower(A).as_text().count("sdy.sharding_constraint") == 3
    with grid():
        spec = plugrt.jit(lambda v: plugrt.jit(lambda u: u + 1, in_shardings=P("x"))(v))
        assert spec(A).sharding.num_devices == 8


def _nested() -> Any:
    inner = plugrt.jit(lambda v: v + 1, in_shardings=over("x"))
    return plugrt.jit(lambda v: inner(v))


def _in_context(call: Callable[[], Any]) -> Any:
    with plugrt.set_mesh(grid()):
        return call()


ALL = r"\[0, 1, 2, 3, 4, 5, 6, 7\] of"
CONTEXT = rf"the mesh in the context \(plugrt.set_mesh\), Mesh.*, on the devices {ALL}"
WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "an argument elsewhere": (
        lambda: _in_context(lambda: plugrt.device_put(A, devices()[5]) + 1), DeviceMismatch,
        rf"argument x1: .*:5 of .*\n  {CONTEXT}",
    ),
    "in_shardings elsewhere": (
        lambda: _in_context(
            lambda: plugrt.jit(lambda v: v, in_shardings=NamedSharding(line(), P("x")))(A)
        ),
        DeviceMismatch, rf"in_shardings: NamedSharding.*\[0, 1, 2, 3\] of.*\n  {CONTEXT}",
    ),
    "jit's device": (
        lambda: _in_context(lambda: plugrt.jit(lambda v: v, device=devices()[5])(A)),
        DeviceMismatch, rf"jit's device or backend on .*:5 of .*\n  {CONTEXT}",
    ),
    "a nested function elsewhere": (
        lambda: _nested()(plugrt.device_put(A, devices()[5])), DeviceMismatch,
        rf"in_shardings of jitted '<lambda>', called at .*test_mesh_contexts.py:\d+ on the devices "
        rf"{ALL}.*\n  argument v: .*:5 of",
    ),
    "an axis that the mesh lacks": (
        lambda: _in_context(lambda: plugrt.jit(lambda v: v, in_shardings=P("q"))(A)),
        ValueError, r"jit's in_shardings names the axis 'q' in .*the mesh in the context is Mesh\(",
    ),
    "shard_map without one": (
        lambda: plugrt.shard_map(lambda v: v, in_specs=P(), out_specs=P())(A), ValueError,
        "shard_map of '<lambda>' is given no mesh, and there is no mesh in the context",
    ),
    "set_mesh while tracing": (
        lambda: plugrt.jit(lambda v: plugrt.set_mesh(grid()))(A), ValueError, "set_mesh was called",
    ),
    "get_mesh while tracing": (
        lambda: plugrt.jit(lambda v: get_mesh())(A), ValueError, "get_abstract_mesh gives",
    ),
    "a shape": (lambda: plugrt.set_mesh((4, 2)), TypeError, "set_mesh takes a Mesh, or None"),
    "an abstract mesh": (
        lambda: use_mesh(grid().abstract_mesh).__enter__(), TypeError, "use_mesh takes a Mesh",
    ),
}  # fmt: skip


@behaviour(105, "what contradicts the mesh in the context is refused, and the error names it")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses(name: str) -> None:
    call, error, said = WRONG[name]
    with pytest.raises(error, match=said):
        call()
    assert get_mesh() == NOTHING


def test_blocks_end_by_hand_and_by_a_stack() -> None:
    mesh, other = line(), plugrt.make_mesh((2,), ("y",))
    manager = use_mesh(mesh)
    manager.__enter__()
    with contextlib.ExitStack() as stack:
        stack.enter_context(use_mesh(other))
        assert get_mesh() == other
        with manager:
            assert get_mesh() == mesh
        assert get_mesh() == other
    assert get_mesh() == mesh
    manager.__exit__(None, None, None)
    assert get_mesh() == NOTHING


def test_a_block_that_another_thread_ends_is_refused() -> None:
    def enter() -> Any:
        with use_mesh(line()):
            yield

    block = enter()
    thread = threading.Thread(target=next, args=(block,))
    thread.start()
    thread.join()
    with use_mesh(mine := plugrt.make_mesh((2,), ("y",))):
        with pytest.raises(FailedPrecondition, match="in no `with` block"):
            next(block)
        assert get_mesh() == mine


def test_leaving_a_mesh_that_was_not_entered_is_named() -> None:
    mesh = line()
    for _ in range(2):
        with pytest.raises(FailedPrecondition, match="in no `with` block"):
            mesh.__exit__(None, None, None)
        with mesh:
            assert plugrt.device_put(A, P("x")).sharding.num_devices == 4
