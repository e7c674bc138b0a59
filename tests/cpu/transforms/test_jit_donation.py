"""`jit`: donated arguments."""

from __future__ import annotations

import itertools
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import device_put, devices, jit
from plugrt.errors import DeletedBuffer, InvalidArgument, PlugrtError
from plugrt.sharding import Mesh, NamedSharding, PartitionSpec
from support.effort import some_of
from support.native_core import python_calls
from support.ops import add, total
from support.requirements import needs_jax

N = np.arange(4096, dtype=np.float32)


def test_donation_by_name_and_of_pytrees() -> None:
    def step(state: Any, batch: Any) -> Any:
        return {"w": add(state["w"], batch), "n": add(state["n"], 1)}

    for f, call in (
        (jit(step, donate_argnames="state"), lambda f, s, b: f(state=s, batch=b)),
        (jit(step, donate_argnames="state"), lambda f, s, b: f(s, b)),
        (jit(step, donate_argnums=0), lambda f, s, b: f(s, b)),
        (jit(step, donate_argnums=(-2,)), lambda f, s, b: f(s, batch=b)),
    ):
        state, batch = device_put({"w": N, "n": np.int32(0)}), device_put(N)
        state_after = call(f, state, batch)
        assert state["w"].is_deleted()
        assert state["n"].is_deleted()
        assert not batch.is_deleted()
        assert state_after["n"].item() == 1


def test_using_a_donated_array_names_argument_and_call() -> None:
    f = jit(lambda x: add(x, 1), donate_argnums=0)
    g = jit(lambda a, b: add(a, b))
    x = device_put(N)
    f(x)
    for use, words in (
        (lambda: np.asarray(x), r"donated to '<lambda>', called at .*donation\.py:\d+"),
        (lambda: g(N, x), r"argument b of '<lambda>'.*donated to '<lambda>'"),
        (lambda: f(x), "donated to"),
        (lambda: add(x, x), "donated to"),
        (lambda: device_put(x, devices()[1]), "donated to"),
    ):
        with pytest.raises(DeletedBuffer, match=words):
            use()


def test_donation_that_cannot_be_used_warns_at_the_call() -> None:
    f = jit(lambda x, y: (total(x), add(y, 1)), donate_argnums=(0, 1))
    x, y = device_put(N), device_put(N[:2])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(x, y)
        f(device_put(N), device_put(N[:2]))
    assert len(caught) == 1
    assert "Some donated buffers were not usable: float32[4096]" in str(caught[0].message)
    assert Path(caught[0].filename) == Path(__file__)
    assert not x.is_deleted()
    assert y.is_deleted()


def test_one_array_donated_and_passed_again_names_both_arguments() -> None:
    """So it does for two arrays that share their memory, as `device_put` makes them."""
    f = jit(lambda x, y: add(x, y), donate_argnums=0)
    both = jit(lambda x, y: (add(x, y), add(x, 1)), donate_argnums=(0, 1))
    deep = jit(lambda d, y: add(d["q"], y), donate_argnums=0)
    ahead = deep.lower({"q": N}, N).compile()
    for _ in range(2):
        x = device_put(N)
        for call, says in (
            (lambda x=x: f(x, x), "argument x of .* is donated, .* argument y, which is not;"),
            (lambda x=x: f(x, device_put(x)), "argument x .* donated, .* argument y, which is not"),
            (lambda x=x: both(x, x), "argument x .* is donated, .* argument y, which is also"),
            (lambda x=x: deep({"q": x}, x), r"argument d\['q'\] of .* is donated, .* argument y, "),
            (lambda x=x: ahead({"q": x}, x), r"argument d\['q'\] of .* is donated, .* argument y,"),
        ):
            with pytest.raises(InvalidArgument, match=says):
                call()
            np.testing.assert_array_equal(x, N)
    np.testing.assert_array_equal(f(device_put(N), device_put(N)), 2 * N)


def test_an_array_donated_and_passed_twice_is_refused_untouched() -> None:
    """Otherwise other threads could find it deleted for a moment."""
    f, x = jit(lambda x, y: add(x, y), donate_argnums=0), device_put(N)
    with (
        python_calls() as seen,
        pytest.raises(InvalidArgument, match=r"argument x of .* is donated, .* argument y"),
    ):
        f(x, x)
    assert "_mark_lost" not in seen
    with python_calls() as seen:
        x.delete()
    assert "_mark_lost" in seen


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("donated", [0, (0, 1)])
@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x, y: x + y, id="one result"),
        pytest.param(lambda x, y: (x + 1, y * 2), id="two results"),
        pytest.param(lambda x, y: {"a": x + 1, "b": y * 2}, id="dict"),
    ],
)
def test_one_array_donated_and_passed_again_does_not_stop_later_pmaps(
    function: Any, donated: Any
) -> None:
    """XLA's CPU library refuses such a launch on one device, and then the next launch hangs."""
    devices = plugrt.local_devices()[:2]
    a = plugrt.pmap(lambda x: x + 1, devices=devices)(np.ones((2, 3), np.float32))
    f = plugrt.pmap(function, donate_argnums=donated, devices=devices)
    for _ in range(2):
        with pytest.raises(InvalidArgument, match=r"argument x of .* is donated, .* argument y"):
            f(a, a)
        again = plugrt.pmap(lambda x: x * 3, devices=devices)(a)
        np.testing.assert_array_equal(again, np.full((2, 3), 6))


@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_scalars_that_are_cached_survive_donation() -> None:
    f = jit(lambda x, y: add(x, y), donate_argnums=(0, 1))
    g = jit(lambda x: add(x, 1), donate_argnums=0)
    for _ in range(3):
        assert f(2.0, 2.0).item() == 4
        assert g(2.0).item() == 3
        assert add(2.0, 2.0).item() == 4
        jit(lambda x: x)(2.0).delete()
        assert add(2.0, 2.0).item() == 4


def test_donating_what_the_function_closes_over_names_both() -> None:
    x = device_put(N)
    f = jit(lambda first: add(first, x), donate_argnums=0)
    for _ in range(2):
        with pytest.raises(
            PlugrtError, match=r"argument first of .* is donated, .*closes over.*copy"
        ):
            f(x)
        assert not x.is_deleted()
    np.testing.assert_array_equal(f(device_put(N)), 2 * N)


def test_a_deleted_argument_that_is_returned_stops_the_call_before_its_launch() -> None:
    """So the donated arguments are not deleted."""
    keep_first = jit(lambda x, y: (x, add(y, y)), donate_argnums=1)
    for _ in range(3):  # the first traces, the last is made by the core
        x, y = device_put(np.ones(3)), device_put(np.ones(3))
        x.delete()
        with pytest.raises(DeletedBuffer, match=r"argument x of '<lambda>'.* was deleted"):
            keep_first(x, y)
        assert not y.is_deleted()
        kept, _ = keep_first(device_put(np.ones(3)), y)
        np.testing.assert_array_equal(np.asarray(kept), np.ones(3))
        assert y.is_deleted()


@pytest.mark.parametrize("taking", ["donated", "deleted"])
def test_a_returned_argument_survives_another_threads_donation(taking: str) -> None:
    """Either the returned array is right, or the call is refused, since the other came first."""
    double, keep = jit(lambda x: add(x, x), donate_argnums=0), jit(lambda x, y: (x, add(y, y)))
    other = device_put(np.ones(3))
    start = threading.Barrier(2)

    def return_it(x: Any) -> Any:
        start.wait(60)
        try:
            return keep(x, other)[0]
        except DeletedBuffer:
            return None

    for run in (double, lambda x: keep(x, other)):
        for _ in range(3):  # until the core makes these calls
            run(device_put(np.ones(1000)))
    with ThreadPoolExecutor(1) as pool:
        for _ in range(100):
            x = device_put(np.ones(1000))
            returning = pool.submit(return_it, x)
            start.wait(60)
            if taking == "donated":
                np.testing.assert_array_equal(np.asarray(double(x)), np.full(1000, 2.0))
            else:
                x.delete()
            returned = returning.result()
            assert x.is_deleted()
            if returned is not None:
                np.testing.assert_array_equal(np.asarray(returned), np.ones(1000))


@pytest.mark.parametrize("kinds", ["donated, donated", "donated, deleted", "deleted, deleted"])
def test_arrays_that_share_buffers_are_taken_by_two_threads_at_once(kinds: str) -> None:
    double, same = jit(lambda x: add(x, x), donate_argnums=0), jit(lambda x: (x, add(x, x)))
    start = threading.Barrier(2)

    def take(x: Any, kind: str) -> None:
        start.wait(60)
        if kind == "donated":
            np.testing.assert_array_equal(np.asarray(double(x)), np.full(1000, 2.0))
        else:
            x.delete()
        assert x.is_deleted()

    double(same(device_put(np.ones(1000)))[0])
    one, other = kinds.split(", ")
    with ThreadPoolExecutor(1) as pool:
        for _ in range(100):
            x = device_put(np.ones(1000))
            taking = pool.submit(take, same(x)[0], other)
            take(x, one)
            taking.result()


def test_one_array_donated_twice_that_is_moved_for_both_arguments() -> None:
    if len(devices()) < 2:
        pytest.skip("no 2 devices here")
    split = NamedSharding(Mesh(np.array(devices()[:2]), ("i",)), PartitionSpec("i"))
    sums = jit(lambda x, y: (add(x, y), add(y, y)), donate_argnums=(0, 1), in_shardings=split)
    x = device_put(N)
    for result in sums(x, x):
        np.testing.assert_array_equal(np.asarray(result), 2 * N)
    assert x.is_deleted()


@pytest.mark.parametrize("exchange", [False, True])
def test_one_part_that_is_donated_and_passed_again_is_refused_before_a_launch(
    exchange: bool,
) -> None:
    if len(devices()) < 4:
        pytest.skip("no 4 devices here")
    over = NamedSharding(Mesh(np.array(devices()[:4]), ("i",)), PartitionSpec("i"))
    taken, kept = ([device_put(N, device) for device in devices()[:4]] for _ in range(2))
    kept[1] = taken[1]
    arrays = [
        plugrt.make_array_from_single_device_arrays((4 * N.size,), over, parts)
        for parts in (taken, kept)
    ]
    adding = lambda x, y: add(x, (x * y).sum() if exchange else y)  # noqa: E731
    donating = jit(adding, donate_argnums=0)
    donating(*(device_put(np.tile(N, 4), over) for _ in arrays))
    with pytest.raises(InvalidArgument, match="donated"):
        donating(*arrays)
    for array in arrays:
        np.testing.assert_array_equal(np.asarray(array), np.tile(N, 4))


def test_a_read_of_an_argument_being_donated_blocks_no_other_thread() -> None:
    """The launch's Python function, which deletes another array, must not wait for the read."""
    one = NamedSharding(Mesh(np.array(devices()[:1]), ("i",)), PartitionSpec("i"))
    same = lambda x: plugrt.make_array_from_single_device_arrays(x.shape, one, [x])  # noqa: E731
    called, reads = threading.Event(), threading.Event()
    others = [device_put(N) for _ in range(4)]

    def give(value: Any) -> Any:
        called.set()
        if len(others) == 1:
            reads.wait(60)
            time.sleep(0.2)
        others.pop().delete()
        return np.asarray(value)

    kind = plugrt.ShapeDtypeStruct(N.shape, N.dtype)
    donating = jit(lambda x: add(x, plugrt.pure_callback(give, kind, x)), donate_argnums=0)
    for _ in range(3):
        donating(same(device_put(N))).block_until_ready()
    made = add(device_put(N), 0).block_until_ready()
    called.clear()

    def read() -> None:
        called.wait(60)
        reads.set()
        with pytest.raises(DeletedBuffer):
            np.asarray(made)

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        np.testing.assert_array_equal(np.asarray(donating(same(made))), 2 * N)
        reading.result()


DONATING: dict[str, Any] = {
    "one more dimension": lambda n, x: x[..., None],
    "flat": lambda n, x: n.reshape(x, (-1,)),
    "transposed": lambda n, x: x.T,
    "half the bytes": lambda n, x: n.astype(x, n.float16),
    "as many bytes": lambda n, x: n.astype(x, n.int32),
    "one byte": lambda n, x: x > 0,
    "a constant of its type": lambda n, x: n.ones_like(x),
    "a flat constant": lambda n, x: n.zeros((x.size,), dtype=n.float32),
    "two of its size": lambda n, x: (x.T, x + 1),
    "a sum": lambda n, x: n.sum(x),
    "a part": lambda n, x: x[0],
    "a number": lambda n, x: 1,
    "itself and a constant": lambda n, x: (x, n.ones_like(x)),
}


@needs_jax
@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "bool"])
def test_donation_to_results_of_another_type_as_in_jax(dtype: str) -> None:
    """Same as JAX: donation to a result of as many elements and bytes, computed or constant."""
    import jax

    wrong = []
    cases = [*itertools.product(DONATING, [(1,), (2, 3)], [False, True])]
    for name, shape, keep_unused in some_of(cases, 20, dtype):
        function, data, gone = DONATING[name], np.ones(shape, dtype), []
        for library, names in ((plugrt, plugrt.array_api), (jax, jax.numpy)):
            x = library.device_put(data)
            call = library.jit(
                lambda x, f=function, n=names: f(n, x), donate_argnums=0, keep_unused=keep_unused
            )
            expected = function(np, data)
            for found, known in zip(
                jax.tree.leaves(call(x)), jax.tree.leaves(expected), strict=True
            ):
                np.testing.assert_array_equal(np.asarray(found), known)
            gone.append(x.is_deleted())
        if gone[0] != gone[1]:
            wrong.append((name, shape, keep_unused, gone))
    assert wrong == []


@pytest.mark.parametrize(
    "twice",
    [
        lambda: jit(lambda x: (x, x))(N),
        lambda: jit(lambda x: (x, x))(2.5),
        lambda: jit(lambda x: (x, x))(device_put(N)),
        lambda: jit(lambda x: (x, x), device=devices()[3])(device_put(N)),
        lambda: jit(lambda x: (x, [x, x]))(device_put(N, _over(4, "i"))),
    ],
    ids=["host", "number", "array", "moved", "divided"],
)
@pytest.mark.parametrize("donated", [(0,), (1,), (0, 1)])
def test_results_of_one_argument_are_independent_where_they_are_donated(
    twice: Any, donated: tuple[int, ...]
) -> None:
    """Same as JAX: results that are one argument are arrays of their own."""
    first, second = twice()
    f = jit(lambda x, y: (x * 2, plugrt.tree.map(lambda v: v * 3, y)), donate_argnums=donated)
    expected = np.asarray(first)
    doubled, tripled = f(first, second)
    np.testing.assert_array_equal(doubled, expected * 2)
    for array in plugrt.tree.leaves(tripled):
        np.testing.assert_array_equal(array, expected * 3)
    assert first.is_deleted() == (0 in donated)
    assert all(x.is_deleted() == (1 in donated) for x in plugrt.tree.leaves(second))


def _over(count: int, *spec: Any) -> NamedSharding:
    shape, names = ((2, count // 2), ("i", "j")) if "j" in str(spec) else ((count,), ("i",))
    return NamedSharding(Mesh(np.array(devices()[:count]).reshape(shape), names),
                         PartitionSpec(*spec))  # fmt: skip


PLACES: list[Any] = [("i",), (("i", "j"),), (None, "j"), ()]
CHANGES = ["same", "reshaped", "constrained"]


@needs_jax
@pytest.mark.parametrize(
    ("given", "left", "change"), some_of([*itertools.product(PLACES, [*PLACES, None], CHANGES)], 30)
)
def test_divided_arguments_are_donated_where_their_parts_fit_as_in_jax(
    given: Any, left: Any, change: str
) -> None:
    """Same as JAX: a donated argument is kept if no result has parts of the same size."""
    import jax
    from jax import sharding as of_jax

    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    outcomes = []
    for m, s, constrain in (
        (plugrt, plugrt.sharding, plugrt.with_sharding_constraint),
        (jax, of_jax, jax.lax.with_sharding_constraint),
    ):
        mesh = s.Mesh(np.array(m.devices()[:4]).reshape(2, 2), ("i", "j"))
        place, out = (
            None if spec is None else s.NamedSharding(mesh, s.PartitionSpec(*spec))
            for spec in (given, left)
        )
        functions = {
            "same": lambda x: x + 1,
            "reshaped": lambda x: x.reshape(4, 16) + 1,
            "constrained": lambda x, c=constrain, p=out or place: (c(x + 1, p), 1),
        }
        options = {"out_shardings": out} if out and change != "constrained" else {}
        x = m.device_put(a, place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = m.jit(functions[change], donate_argnums=0, **options)(x)
        whole = result[0] if change == "constrained" else result
        np.testing.assert_array_equal(np.asarray(whole).reshape(8, 8), a + 1)
        outcomes.append(x.is_deleted())
    assert outcomes[0] == outcomes[1]


@needs_jax
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y, z: (x + y, z),
        lambda x, y, z: (x == y, z[:0]),
        lambda x, y, z: (z, z, x + y),
        lambda x, y, z: (x + y, 1.5),
        lambda x, y, z: x + y,
    ],
)
@pytest.mark.parametrize("shape", [(4,), (0,)])
def test_results_that_are_not_computed_take_donated_arguments_as_in_jax(
    function: Any, shape: tuple[int, ...]
) -> None:
    import jax

    outcomes = []
    for m in (plugrt, jax):
        values = [m.device_put(np.full(shape, i, np.float32)) for i in range(3)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m.jit(function, donate_argnums=(0, 1))(*values)
        outcomes.append([x.is_deleted() for x in values])
    assert outcomes[0] == outcomes[1]
