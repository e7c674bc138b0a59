"""Frees, copies and restores buffers of arrays, like launches and other threads."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import device_put, jit
from plugrt.errors import DeletedBuffer
from plugrt.execution.arrays import array_making
from plugrt.execution.arrays.array import array_holding
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.launches import loaded_program
from plugrt.execution.launches.donation import Donation, Taken, give_back
from support.cpu_launches import of_cpu_launches
from support.ops import add

N = np.arange(4096, dtype=np.float32)


def test_memory_is_freed_with_the_array() -> None:
    x = add(device_put(np.ones(3)), 1)
    buffer = weakref.ref(x._shards)
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None
    assert buffer() is None


@of_cpu_launches
@pytest.mark.parametrize("general", [False, True])
def test_what_another_launch_may_use_is_copied_to_be_taken(general: bool) -> None:
    """Otherwise jaxlib makes both wait for ever if the other uses it for one of two arguments."""
    plain = jit(lambda x, y: add(x, y), donate_argnums=0)
    both = jit(lambda x, y: (add(add(x, y), N), y), donate_argnums=0)
    f, expected = (both, 3 * N) if general else (plain, 2 * N)
    y = add(device_put(N), 0)
    for _ in range(3):
        x = add(device_put(N), 0)
        used = x._shards  # as another launch has it
        np.testing.assert_array_equal(plugrt.tree.leaves(f(x, y))[0], expected)
        assert x.is_deleted()
        assert not used.is_deleted()
        np.testing.assert_array_equal(np.asarray(used), N)


def test_what_is_donated_while_it_is_being_shared_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As another thread may do in the core, without a lock."""
    double = jit(lambda x: add(x, x), donate_argnums=0)
    for _ in range(3):  # until the core makes the call
        double(device_put(N))
    x = device_put(N)

    def hold(shards: Any, aval: Any) -> Any:
        double(x)
        return array_holding(shards, aval)

    monkeypatch.setattr(array_making, "array_holding", hold)
    with pytest.raises(DeletedBuffer, match="was donated to '<lambda>'"):
        share_buffers(x, x._aval)


def test_what_is_deleted_while_a_launch_has_it_is_not_given_back() -> None:
    donation = Donation(SimpleNamespace(name="f", kept=(0, 1), donated=(0, 1)))  # type: ignore[arg-type]
    given = [device_put(N), device_put(N)]
    taken: Taken = []
    donation.take(given, [x._shards for x in given], taken)
    given[0].delete()
    give_back(taken)
    assert [x.is_deleted() for x in given] == [True, False]
    with pytest.raises(DeletedBuffer, match="was donated to 'f'"):
        np.asarray(given[0])
    np.testing.assert_array_equal(np.asarray(given[1]), N)


@pytest.mark.parametrize("kind", ["one", "two", "many", "compiled", "passed", "donated"])
def test_what_a_failing_launch_has_meanwhile_is_named_by_another(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread's launch restores it before one finds the reason for the missing buffers."""
    functions: dict[str, Any] = {
        "one": jit(lambda x: add(x, x)),
        "two": jit(lambda x, y: add(x, y)),
        "many": jit(lambda x, y: (add(x, y), add(x, x))),
        "compiled": jit(lambda x: add(x, x)).lower(device_put(N)).compile(),
        "passed": jit(lambda x: (x, add(x, x))),
        "donated": jit(lambda x, y: add(x, y), donate_argnums=1),
    }
    function, count = functions[kind], 2 if kind in ("two", "many", "donated") else 1
    x = device_put(N)
    for _ in range(3):
        function(*[x, device_put(N)][:count])
    others = Donation(SimpleNamespace(name="f", kept=(0,), donated=(0,)))  # type: ignore[arg-type]
    taken: Taken = []
    others.take([x], [x._shards], taken)
    explain: Any = loaded_program.raise_explained

    def give_back_and_explain(*arguments: Any) -> None:
        give_back(taken)
        explain(*arguments)

    monkeypatch.setattr(loaded_program, "raise_explained", give_back_and_explain)
    said = r"'<lambda>': the array float32\[4096\] was donated meanwhile to a launch that failed"
    with pytest.raises(DeletedBuffer, match=said):
        function(*[x, device_put(N)][:count])
    give_back(taken)
    function(*[x, device_put(N)][:count])
