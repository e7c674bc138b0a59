"""NumPy arguments of launches on several devices: their parts use reused memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import plugrt
from plugrt import lax
from plugrt.interface import TensorType
from plugrt.sharding import NamedSharding, PartitionSpec
from plugrt_cpu import adapter
from plugrt_cpu.part_scratch import make_host_launcher
from plugrt_cpu.shards import CpuShards
from support.traffic import Traffic, watch

DEVICES = 4
SPECS = [("x", "y"), ("x",), (None, "y"), (("x", "y"),), ()]


def over(*entries: Any) -> NamedSharding:
    mesh = plugrt.make_mesh((2, 2), ("x", "y"), devices=plugrt.devices("cpu")[:DEVICES])
    return NamedSharding(mesh, PartitionSpec(*entries))


@pytest.fixture
def parts_put() -> Iterator[Traffic]:
    """Lists the arrays that are put on several devices."""
    with watch(plugrt.get_backend("cpu"), "put") as found:
        yield found


def random_numbers(seed: int, *shape: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).integers(0, 99, shape).astype(np.float32)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_calls_with_small_numpy_arrays_put_no_parts(
    spec: tuple[Any, ...], parts_put: Traffic
) -> None:
    add = plugrt.jit(lambda a, b: a + 2 * b, in_shardings=over(*spec))
    for i in range(6):
        a, b = random_numbers(i, 8, 4), random_numbers(-i - 1 + 99, 4, 8).T
        np.testing.assert_array_equal(np.asarray(add(a, b)), a + 2 * b)
    assert parts_put == []


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 0,
        lambda x: x * 1,
        lambda x: (x, x + 0, -x),
        lambda x: {"a": x.reshape(8, 2, 2), "b": x},
    ],
)
def test_results_never_see_what_the_source_or_the_next_call_holds(
    function: Callable[..., Any],
) -> None:
    jitted = plugrt.jit(function, in_shardings=over("x"))
    source = np.zeros((8, 4), np.float32)
    results, expected = [], []
    for i in range(20):
        source[:] = np.arange(32).reshape(8, 4) + i
        results.append(plugrt.tree.leaves(jitted(source)))
        expected.append(plugrt.tree.leaves(function(source.copy())))
        source[:] = -1
    for found, wanted in zip(results, expected, strict=True):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(one), other)


@pytest.mark.parametrize(
    "make",
    [
        lambda: (lambda x: lax.psum(x, "i"), random_numbers(0, 4, 3)),  # on all devices at once
        lambda: (lambda x: x + 1, random_numbers(0, 4, 1 << 15)),  # 512 kB
    ],
    ids=["exchanging", "large"],
)
def test_parts_are_put_where_there_is_no_scratch_memory(
    make: Callable[[], tuple[Any, Any]], parts_put: Traffic
) -> None:
    function, host = make()
    mapped = plugrt.pmap(function, "i", devices=plugrt.devices()[:4])
    for _ in range(2):
        mapped(host).block_until_ready()
    assert [len(each.arrays) for each in parts_put] == [4, 4]


class _Part:
    """Replaces jaxlib's array of a result's part; it is ready or not."""

    def __init__(self, ready: bool) -> None:
        self._ready = ready

    def is_ready(self) -> bool:
        return self._ready


def test_memory_is_written_again_only_after_its_launch_is_done(parts_put: Traffic) -> None:
    devices: Any = tuple(plugrt.devices("cpu")[:2])
    client = devices[0].client
    place = client.place(devices)
    of = TensorType((2,), np.dtype("i4"))
    seen: list[tuple[Any, list[int]]] = []
    late = {0, 3}  # launches whose last part is not ready

    def launch(arguments: Sequence[Any]) -> list[Any]:
        [shards] = arguments
        seen.append((shards, [int(np.asarray(memoryview(raw))[0]) for raw in shards.parts()]))
        ready = len(seen) - 1 not in late
        return [
            CpuShards.from_parts([_Part(True), _Part(True)], of, place),
            CpuShards.from_parts([_Part(True), _Part(ready)], of, place),
        ]

    indices = [(slice(0, 2),), (slice(2, 4),)]
    run = make_host_launcher(client, place, launch, [(0, of, indices)])
    assert run is not None
    for i in range(5):
        run([np.array([i, i, -i, -i], np.int32)])
    assert [values for _, values in seen] == [[i, -i] for i in range(5)]
    given = [shards for shards, _ in seen]
    assert given[0] is not given[1]  # the first launch still uses it
    assert given[1] is given[2] is given[3]
    assert given[3] is not given[4]
    late |= {*range(5, 40)}
    for i in range(5, 40):
        run([np.array([i, i, -i, -i], np.int32)])
    assert [values for _, values in seen] == [[i, -i] for i in range(40)]
    assert len(parts_put) == 40 - 5 - 8  # after 8 failed tries arguments are put


def test_memory_that_jaxlib_copied_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    real = adapter.put
    monkeypatch.setattr(
        adapter, "put", lambda array, *rest: real(array.copy(), *rest[:3], adapter.ONLY_DURING_CALL)
    )
    devices: Any = tuple(plugrt.devices("cpu")[:2])
    place = devices[0].client.place(devices)
    wanted = [(0, TensorType((2,), np.dtype("i4")), [(slice(0, 2),), (slice(2, 4),)])]
    assert make_host_launcher(devices[0].client, place, lambda _: [], wanted) is None


class _Program:
    """A program over two devices, whose results are ready if ``ready`` is true."""

    def __init__(self, parts_put: Traffic) -> None:
        self.ready = False
        self._put = parts_put
        self._given: list[float] = []
        self._devices: Any = tuple(plugrt.devices("cpu")[:2])
        place = self._devices[0].client.place(self._devices)
        self._of, self._place = TensorType((), np.dtype("f4")), place
        run = make_host_launcher(
            self._devices[0].client, place, self._launch, [(1, self._of, [(0,), (1,)])]
        )
        assert run is not None
        self._run = run

    def _launch(self, arguments: Sequence[Any]) -> list[Any]:
        self._given = [float(np.asarray(memoryview(raw))) for raw in arguments[1].parts()]
        parts = [_Part(self.ready), _Part(self.ready)]
        return [CpuShards.from_parts(parts, self._of, self._place)]

    def count_in_scratch(self, count: int) -> list[int]:
        """Launches ``count`` times; returns the indices of the launches with scratch memory."""
        numbers = []
        for i in range(count):
            before = len(self._put)
            self._run([None, np.array([i, -i], np.float32)])
            assert self._given == [i, -i]
            if len(self._put) == before:
                numbers.append(i)
        return numbers


def test_programs_whose_results_are_never_there_at_once_have_their_arguments_put(
    parts_put: Traffic,
) -> None:
    tried = _Program(parts_put).count_in_scratch(2000)
    assert tried[:8] == [*range(8)]
    pauses = np.diff(tried[7:])
    assert (pauses[1:] == 2 * pauses[:-1] - 1).all(), "each pause is twice the one before"
    assert len(tried) <= 8 + 6


def test_a_program_that_was_slow_for_a_while_has_scratch_memory_again(parts_put: Traffic) -> None:
    program = _Program(parts_put)
    for _ in range(3):  # and each time from the beginning: a success resets the count
        program.ready = False
        assert program.count_in_scratch(20) == [*range(8)]
        program.ready = True
        found = program.count_in_scratch(100)
        assert len(found) > 50
        assert found == [*range(found[0], 100)]


def test_a_pause_has_an_end_however_long_it_was_slow(parts_put: Traffic) -> None:
    program = _Program(parts_put)
    program.count_in_scratch(20_000)
    program.ready = True
    assert program.count_in_scratch(5000)[-1] == 4999
