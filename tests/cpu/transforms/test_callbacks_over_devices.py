"""Python functions that programs over several devices call: the caller, and the arguments."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import devices, get_backend, lax
from plugrt.errors import ArgumentError, Unimplemented
from plugrt.sharding import Mesh, NamedSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour

A = np.arange(8, dtype=np.float32)
WHOLE = plugrt.ShapeDtypeStruct((8,), "float32")
PART = plugrt.ShapeDtypeStruct((2,), "float32")
ONE = plugrt.ShapeDtypeStruct((), "float32")


def line() -> Mesh:
    return Mesh(devices()[:4], "x")


def over_x() -> Any:
    return plugrt.device_put(A, NamedSharding(line(), P("x")))


class Seen:
    """A function that records its arguments."""

    __name__ = "see"

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self._lock = threading.Lock()

    def __call__(self, *values: Any) -> Any:
        with self._lock:
            self.calls.append(tuple(np.asarray(v).tolist() for v in values))
        return values[-1]

    def taken(self) -> Counter[Any]:
        """Waits for all effects; returns the recorded arguments with counts, and clears them."""
        plugrt.effects_barrier()
        found = counted(*self.calls)
        self.calls.clear()
        return found


def counted(*calls: Any) -> Counter[Any]:
    return Counter(map(repr, calls))


JIT: dict[str, Callable[[Seen, Any], Any]] = {
    "pure_callback": lambda see, v: plugrt.pure_callback(see, WHOLE, v) + 1,
    "io_callback": lambda see, v: plugrt.io_callback(see, WHOLE, v) + 1,
    "debug.callback": lambda see, v: (plugrt.debug.callback(see, v), v + 1)[1],
    "in a loop": lambda see, v: lax.fori_loop(
        0, 1, lambda i, w: plugrt.io_callback(see, WHOLE, w) + 1, v
    ),
    "in an inner function": lambda see, v: (
        plugrt.jit(lambda w: plugrt.io_callback(see, WHOLE, w))(v) + 1
    ),
}


@behaviour(111, "a function that a program of jit over a mesh calls is called once, with the whole")
@pytest.mark.parametrize("name", JIT)
def test_a_call_of_jit_is_made_once(name: str) -> None:
    see, x = Seen(), over_x()
    f = plugrt.jit(lambda v: JIT[name](see, v))
    for _ in range(2):
        np.testing.assert_array_equal(f(x), A + 1)
        assert see.taken() == counted((A.tolist(),))
    one = plugrt.device_put(A, devices()[1])  # the same trace, on one device
    np.testing.assert_array_equal(f(one), A + 1)
    assert see.taken() == counted((A.tolist(),))


@behaviour(111, "a function without arguments, or with numbers alone, is called once, too")
def test_a_call_without_arrays_is_made_once() -> None:
    see = Seen()

    @plugrt.jit
    def f(x: Any) -> Any:
        plugrt.io_callback(lambda: (see(0), None)[1], None)
        plugrt.debug.callback(see, 1.5)
        return x + plugrt.io_callback(lambda: see(np.float32(1)), ONE)

    np.testing.assert_array_equal(f(over_x()), A + 1)
    assert see.taken() == counted((0,), (1.5,), (1.0,))


@behaviour(111, "with `partitioned=True` each device calls with the part that it has, once each, "
           "and nothing is gathered")  # fmt: skip
def test_each_part_is_seen_once_with_its_index() -> None:
    see, x = Seen(), over_x()
    where = plugrt.device_put(np.arange(8, dtype=np.int32), x.sharding)

    @plugrt.jit
    def f(v: Any, i: Any) -> Any:
        plugrt.debug.callback(see, i, v, partitioned=True)
        return v + 1

    if not type(get_backend()).__module__.startswith("plugrt_cpu"):
        with pytest.raises(Unimplemented, match=r"'see' of debug.*partitioned=True.*over 4 dev"):
            f(x, where)
        pytest.skip("the library has no partitioned callbacks")
    for _ in range(2):
        np.testing.assert_array_equal(f(x, where), A + 1)
        assert see.taken() == counted(*[([i, i + 1], [1.0 * i, i + 1.0]) for i in range(0, 8, 2)])
    assert "all-gather" not in f.lower(x, where).compile().as_text()
    f(plugrt.device_put(A, devices()[0]), plugrt.device_put(where, devices()[0]))
    assert sum(see.taken().values()) == 1


MAPPED: dict[str, Callable[[Seen, Any, Any], Any]] = {
    "pure_callback": lambda see, i, v: plugrt.pure_callback(see, PART, i, v),
    "io_callback": lambda see, i, v: plugrt.io_callback(see, PART, i, v),
    "debug.callback": lambda see, i, v: (plugrt.debug.callback(see, i, v), v)[1],
    "partitioned": lambda see, i, v: (plugrt.debug.callback(see, i, v, partitioned=True), v)[1],
    "in an inner function": lambda see, i, v: plugrt.jit(
        lambda j, w: plugrt.io_callback(see, PART, j, w)
    )(i, v),
}


@behaviour(111, "within shard_map each device calls with its part, once, and can say its index")
@pytest.mark.parametrize("name", MAPPED)
def test_each_part_of_shard_map_is_seen_once_with_its_index(name: str) -> None:
    see, x = Seen(), over_x()
    mapped = plugrt.shard_map(
        lambda v: MAPPED[name](see, lax.axis_index("x"), v) * 2,
        mesh=line(),
        in_specs=P("x"),
        out_specs=P("x"),
    )
    for f in (mapped, plugrt.jit(lambda v: mapped(v) + 0)):
        np.testing.assert_array_equal(f(x), A * 2)
        assert see.taken() == counted(*[(i, [2.0 * i, 2.0 * i + 1]) for i in range(4)])


@behaviour(111, "`debug.print` prints the whole once in jit over a mesh, each part in shard_map")
def test_prints(capfd: pytest.CaptureFixture[str]) -> None:
    x = over_x()

    def show(v: Any) -> Any:
        plugrt.debug.print("v = {}", v)
        return v

    plugrt.jit(show)(x)
    plugrt.effects_barrier()
    assert capfd.readouterr().out == "v = [0. 1. 2. 3. 4. 5. 6. 7.]\n"
    plugrt.shard_map(show, mesh=line(), in_specs=P("x"), out_specs=P("x"))(x)
    plugrt.effects_barrier()
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == ["v = [0. 1.]", "v = [2. 3.]", "v = [4. 5.]", "v = [6. 7.]"]


ORDERED: dict[str, Callable[[Any], Any]] = {
    "debug.callback": lambda v: plugrt.debug.callback(np.sin, v, ordered=True),
    "debug.print": lambda v: plugrt.debug.print("v = {}", v, ordered=True),
}


@behaviour(111, "`debug`'s ordered calls in a program that is divided are a ValueError that names "
           "the call and the devices")  # fmt: skip
@pytest.mark.parametrize("name", ORDERED)
def test_ordered_calls_of_debug_are_refused(name: str) -> None:
    x, call = over_x(), ORDERED[name]
    names = ", ".join(map(repr, devices()[:4]))
    for f in (
        plugrt.jit(lambda v: (call(v), v)[1]),
        plugrt.shard_map(lambda v: (call(v), v)[1], mesh=line(), in_specs=P(), out_specs=P()),
    ):
        with pytest.raises(ValueError) as caught:
            f(x)
        assert isinstance(caught.value, ArgumentError)
        said = str(caught.value)
        assert f"of {name}, called at" in said
        assert f"divided over [{names}]" in said
    one = Mesh(devices()[:1], "x")
    f = plugrt.shard_map(lambda v: (call(v), v)[1], mesh=one, in_specs=P(), out_specs=P())
    np.testing.assert_array_equal(f(A), A)
    plugrt.effects_barrier()


@behaviour(111, "a call in a shard_map over some axes of a mesh is refused: no device has a part",
           jax="refuses all but debug's, which gather")  # fmt: skip
def test_calls_in_parts_that_the_compiler_divides_are_refused() -> None:
    mesh = Mesh(np.array(devices()[:4]).reshape(2, 2), ("x", "y"))
    f = plugrt.shard_map(
        lambda v: (plugrt.debug.callback(np.sin, v), v)[1],
        mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"},
    )  # fmt: skip
    with pytest.raises(Unimplemented, match=r"'sin' of debug.callback.*over \['y'\] the compiler"):
        f(A)


@behaviour(111, "an exception of a function that a divided program calls is the launch's error, "
           "and does not disturb the next launch")  # fmt: skip
def test_exceptions() -> None:
    calls: list[int] = []

    def count(v: Any) -> Any:
        calls.append(len(calls))
        if len(calls) == 2:
            raise KeyError("no more")
        return v + 1

    @plugrt.jit
    def f(v: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, w: plugrt.pure_callback(count, WHOLE, w), v)

    x = over_x()
    with pytest.raises(plugrt.errors.Internal, match=r"'count' of pure_callback[^~]*no more"):
        np.asarray(f(x))
    assert len(calls) == 2
    for _ in range(5):
        np.testing.assert_array_equal(f(x), A + 3)
    assert len(calls) == 2 + 15


@behaviour(111, "threads that launch one divided program get what their own calls returned")
def test_threads() -> None:
    f = plugrt.jit(lambda v: plugrt.pure_callback(lambda w: w * 2, WHOLE, v))
    hosts = [A + i for i in range(8)]
    given = [plugrt.device_put(host, over_x().sharding) for host in hosts]
    f(given[0])
    found: dict[int, Any] = {}

    def launch(i: int) -> None:
        found[i] = np.asarray(f(given[i]))

    threads = [threading.Thread(target=launch, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, host in enumerate(hosts):
        np.testing.assert_array_equal(found[i], host * 2)
