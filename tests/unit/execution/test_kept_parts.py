"""Deleting an array deletes its parts, as in JAX; arrays made from a part survive both."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import Array, device_put, devices, jit
from plugrt.errors import DeletedBuffer, InvalidArgument
from plugrt.execution.arrays.sharers import tie_parts
from plugrt.execution.launches.donation import Donation
from plugrt.sharding import Mesh, NamedSharding, PmapSharding
from plugrt.sharding import PartitionSpec as P
from support.ops import add, mul
from support.watched_calls import at_calls

N = np.arange(32, dtype=np.float32).reshape(4, 8)
take = jit(lambda x: add(x, 1), donate_argnums=0)
passed = jit(lambda x: (x, mul(x, 2)))


@pytest.fixture(autouse=True)
def _four_devices() -> None:
    if len(devices()) < 4:
        pytest.skip("no 4 devices here")


def over(count: int, spec: P) -> NamedSharding:
    return NamedSharding(Mesh(np.array(devices()[:count]), ("a",)), spec)


def divided() -> Array:
    return device_put(N, over(4, P("a")))


def parts_of(x: Array) -> list[Array]:
    return [shard.data for shard in x.addressable_shards]


def join(parts: list[Array]) -> Array:
    return plugrt.make_array_from_single_device_arrays(N.shape, over(4, P("a")), parts)


def end(x: Array, how: str) -> None:
    if how == "deleted":
        x.delete()
    else:
        before = np.asarray(x) + 1
        np.testing.assert_array_equal(np.asarray(take(x)), before)
    assert x.is_deleted()


def refuse(x: Array, how: str) -> None:
    assert x.is_deleted()
    with pytest.raises(DeletedBuffer, match=f"was {how}"):
        np.asarray(x)


FIRST = N[:1]
MADE: dict[str, tuple[Callable[[Array], Array], Any]] = {
    "part passed": (lambda x: passed(parts_of(x)[0])[0], FIRST),
    "part sliced": (lambda x: parts_of(x)[0][:], FIRST),
    "part reshaped": (lambda x: parts_of(x)[0].reshape(1, 8), FIRST),
    "part put over devices": (lambda x: device_put(parts_of(x)[0], over(4, P())), FIRST),
    "part of a part passed": (lambda x: passed(parts_of(parts_of(x)[0])[0])[0], FIRST),
    "last passed": (lambda x: passed(x.addressable_data(3))[0], N[3:]),
    "whole passed": (lambda x: passed(x)[0], N),
    "joined passed": (lambda x: passed(join(parts_of(x)))[0], N),
    "joined put": (lambda x: device_put(join(parts_of(x)), PmapSharding(devices()[:4], 0)), None),
    "joined twice passed": (lambda x: passed(join(parts_of(join(parts_of(x)))))[0], N),
    "part of joined passed": (lambda x: passed(parts_of(join(parts_of(x)))[0])[0], FIRST),
}
"""Functions that make an array of a part, or of such arrays, and its contents then."""


@pytest.mark.parametrize("how", ["donated", "deleted"])
@pytest.mark.parametrize("kind", MADE)
def test_results_of_a_part_outlive_the_whole(kind: str, how: str) -> None:
    make, expected = MADE[kind]
    for other_ends in (False, True):
        x = divided()
        before = parts_of(x)[1]
        y = make(x)
        after = parts_of(x)[1]
        expected = np.asarray(y) if expected is None else expected
        if other_ends:
            end(y, how)
            np.testing.assert_array_equal(np.asarray(x), N)
            np.testing.assert_array_equal(np.asarray(before), N[1:2])
            end(x, how)
        else:
            end(x, how)
            assert not y.is_deleted()
            np.testing.assert_array_equal(np.asarray(y), expected)
            end(y, how)
        for part in (before, after):
            refuse(part, how)


@pytest.mark.parametrize("how", ["donated", "deleted"])
@pytest.mark.parametrize("kind", ["parts", "joined", "joined of parts", "part of a part"])
def test_parts_and_the_whole_end_together(kind: str, how: str) -> None:
    """As in JAX: deleting the whole deletes all parts, deleting a part leaves the other parts."""
    for ends in ("whole", "part"):
        if kind == "joined":
            parts = [device_put(N[i : i + 1], devices()[i]) for i in range(4)]
            x = join(parts)
        else:
            x = divided()
            parts = parts_of(x)
        others = [x]
        if kind == "joined of parts":
            others = [x, join(parts), *parts_of(join(parts))[:1]]
        elif kind == "part of a part":
            others = [x, *parts_of(parts[0]), *parts_of(x)[:1]]
        if ends == "whole":
            end(x, how)
            for lost in (*others, *parts):
                refuse(lost, how)
        else:
            end(parts[0], how)
            for lost in (*others, parts[0]):
                refuse(lost, how)
            for i in (1, 2, 3):
                np.testing.assert_array_equal(np.asarray(parts[i]), N[i : i + 1])


@pytest.mark.parametrize("how", ["donated", "deleted"])
def test_an_array_joined_of_two_ends_with_either(how: str) -> None:
    for first in (False, True):
        x, y = divided(), divided()
        joined = join([*parts_of(x)[:2], *parts_of(y)[2:]])
        kept = passed(joined)[0]
        end(x if first else y, how)
        refuse(joined, how)
        np.testing.assert_array_equal(np.asarray(y if first else x), N)
        np.testing.assert_array_equal(np.asarray(kept), N)


def test_deleting_the_whole_frees_the_memory_that_parts_have() -> None:
    x = add(divided(), 0).block_until_ready()
    parts = parts_of(x)
    kept = passed(parts[0])[0]
    x.delete()
    assert [part.is_deleted() for part in parts] == [True] * 4
    assert all(part._shards is None for part in parts)
    np.testing.assert_array_equal(np.asarray(kept), FIRST)
    y = add(divided(), 0).block_until_ready()
    parts, buffers = parts_of(y), y._live()
    y.delete()
    assert [buffer.is_deleted() for buffer in buffers] == [True] * 4


def test_sharing_one_part_copies_no_other() -> None:
    x = add(device_put(np.zeros((4, 4096), np.float32), over(4, P("a"))), 0)
    parts = parts_of(x)
    kept = passed(parts[0])[0]
    pointers = [part.unsafe_buffer_pointer() for part in parts]
    taken = [take(part) for part in parts]
    found = [y.unsafe_buffer_pointer() == at for y, at in zip(taken, pointers, strict=True)]
    assert found == [False, True, True, True]
    np.testing.assert_array_equal(np.asarray(kept), np.zeros((1, 4096)))


def test_an_array_whose_parts_were_looked_at_gives_its_memory_away() -> None:
    x = add(device_put(np.zeros((4, 4096), np.float32), over(4, P("a"))), 0).block_until_ready()
    pointers = [part.unsafe_buffer_pointer() for part in parts_of(x)]
    parts = parts_of(x)
    y = take(x)
    assert [part.unsafe_buffer_pointer() for part in parts_of(y)] == pointers
    assert all(part.is_deleted() for part in parts)


def test_an_array_joined_of_one_part_is_donated_without_a_copy() -> None:
    """On each backend, whether or not its launches copy buffers that others use."""
    for donated in ("part", "whole"):
        part = add(device_put(N, devices()[0]), 0).block_until_ready()
        x = plugrt.make_array_from_single_device_arrays(N.shape, over(1, P()), [part])
        pointer = part.unsafe_buffer_pointer()
        assert take(part if donated == "part" else x).unsafe_buffer_pointer() == pointer
        assert x.is_deleted()
        assert part.is_deleted()


both = jit(lambda x, y: (add(x, 1), mul(y, 2)), donate_argnums=(0, 1))
one = jit(lambda x, y: (add(x, 1), mul(y, 2)), donate_argnums=0)


@pytest.mark.parametrize("f", [both, one], ids=["both", "one"])
@pytest.mark.parametrize("part_first", [False, True])
def test_an_array_and_its_part_are_not_passed_where_one_is_donated(
    f: Any, part_first: bool
) -> None:
    """As in JAX. XLA's CPU library refuses such a launch, too, and then hangs others."""
    x = device_put(N, devices()[0])
    [part] = parts_of(x)
    with pytest.raises(InvalidArgument, match=r"argument 0 of .* is donated, and another argument"):
        f(*((part, x) if part_first else (x, part)))
    np.testing.assert_array_equal(np.asarray(x), N)
    np.testing.assert_array_equal(np.asarray(part), N)
    np.testing.assert_array_equal(np.asarray(f(x, np.asarray(N))[0]), N + 1)
    refuse(part, "donated")


@pytest.mark.parametrize("deleted", [None, "whole", "part"])
def test_a_launch_that_fails_gives_the_whole_and_the_parts_back(deleted: str | None) -> None:
    """Unless the array or the part was deleted meanwhile, which also deletes the other."""
    x = device_put(N, devices()[0])
    [part] = parts_of(x)

    def fail(*_: Any) -> Any:
        if deleted:
            assert x.is_deleted()
            assert part.is_deleted()
            (x if deleted == "whole" else part).delete()
        raise InvalidArgument("no launch")

    fails = at_calls([Donation._refuse_tied], fail)
    with pytest.raises((InvalidArgument, DeletedBuffer)), fails:
        take(x)
    for array in (x, part):
        assert array.is_deleted() is (deleted is not None)
        if deleted is None:
            np.testing.assert_array_equal(np.asarray(array), N)


@pytest.mark.parametrize("how", ["donated", "deleted"])
def test_parts_of_what_is_gone_meanwhile_are_refused(how: str) -> None:
    """Another thread deletes the array after its buffers were read, before its parts are listed."""
    x = divided()
    meanwhile = at_calls([tie_parts], lambda *_: end(x, how))
    with meanwhile, pytest.raises(DeletedBuffer, match=f"was {how}"):
        _ = x.addressable_shards


def test_a_put_with_donation_deletes_the_parts() -> None:
    x = divided()
    parts = parts_of(x)
    y = device_put(x, over(2, P()), donate=True)
    assert all(part.is_deleted() for part in parts)
    np.testing.assert_array_equal(np.asarray(y), N)


def test_parts_that_are_dropped_leave_nothing() -> None:
    x = divided()
    for _ in range(200):
        parts_of(x)
    assert len(x._sharers) < 50
    gc.collect()
    assert sum(reference() is not None for reference in x._sharers) == 1


@pytest.mark.parametrize("how", ["donated", "deleted"])
def test_a_part_is_whole_or_gone_with_the_array_while_threads_end_it(how: str) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    current, stop, wrong = [divided()], time.monotonic() + 1, list[str]()

    def end_each() -> None:
        while time.monotonic() < stop and not wrong:
            end(current[0], how)
            current[0] = divided()

    thread = threading.Thread(target=end_each)
    thread.start()
    refused = kept = 0
    try:
        while time.monotonic() < stop:
            try:
                y = passed(current[0].addressable_shards[0].data)[0]
            except DeletedBuffer:
                refused += 1
                continue
            kept += 1
            if y.is_deleted() or not np.array_equal(np.asarray(y), FIRST):
                wrong.append(repr(y._shards))
    finally:
        thread.join()
        sys.setswitchinterval(interval)
    assert not wrong
    assert refused + kept
