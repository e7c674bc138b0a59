"""Arrays on several devices: indexing in place, one gather for reads, printing and deletion."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import devices, live_arrays, monitoring
from plugrt.errors import DeletedBuffer, InvalidIndex
from plugrt.sharding import NamedSharding, PmapSharding, PositionalSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.traffic import watch

A = np.arange(96, dtype=np.float32).reshape(4, 6, 4)
INDICES: list[tuple[int, Any]] = [
    (0, 2), (0, -1), (0, (1,)), (0, (3, slice(None))), (0, (-4, ...)),
    (0, (..., 2, slice(None), slice(None))),
    (2, (slice(None), slice(None), 3)), (2, (..., -2)), (2, (slice(None), ..., 0)),
    (0, (..., 1)), (0, (1, 2)), (0, slice(1, 3)), (0, (1, slice(2))), (0, (1, None)), (0, ()),
    (2, 1), (2, (slice(None), 1)), (2, (slice(0, 2), ..., 1)), (0, (1, np.array([0, 2]))),
]  # fmt: skip


USES: list[Any] = [
    np.asarray, lambda part: part.block_until_ready(),
    lambda part: plugrt.block_until_ready([part]), plugrt.device_get,
    lambda part: plugrt.device_put(part, devices()[0]), lambda part: part.unsafe_buffer_pointer(),
    lambda part: part.__dlpack__(), lambda part: part + 1,
]  # fmt: skip


@pytest.mark.parametrize("use", range(len(USES)))
@pytest.mark.parametrize("end", ["donated", "deleted"])
def test_the_error_of_a_deleted_part_states_the_reason(end: str, use: int) -> None:
    """A part shares the whole array's memory, and is deleted with it."""
    x = plugrt.pmap(lambda a: a * 2)(A)
    part = x.addressable_shards[1].data
    if end == "donated":
        plugrt.pmap(lambda a: a + 1, donate_argnums=0)(x)
    else:
        x.delete()
    with pytest.raises(DeletedBuffer) as caught:
        USES[use](part)
    assert re.search(r"(array|buffer) \(?float32\[1,6,4\]", str(caught.value)), caught.value
    assert re.search("was (deleted|donated)", str(caught.value)), caught.value


@behaviour(110, "indices of arrays over devices are computed, by NumPy's rules")
def test_other_indices() -> None:
    places = PositionalSharding(devices()[:4]).reshape(2, 1, 2)
    over = NamedSharding(plugrt.make_mesh((2, 2), ("x", "y")), P("x", None, "y"))
    for dim, key in INDICES:
        for sharding in (PmapSharding(devices()[:4], dim), places, over):
            np.testing.assert_array_equal(plugrt.device_put(A, sharding)[key], A[key], str(key))
    x = plugrt.device_put(A, PmapSharding(devices()[:4]))
    for wrong in (4, -5, (4, ...), (0, slice(None), slice(None), slice(None))):
        with pytest.raises(InvalidIndex):
            x[wrong]
    column = plugrt.jit(lambda x: x[..., 1])(x)
    np.testing.assert_array_equal(column, A[..., 1])


NAMES = ("tiles", "rows", "whole", "slices", "places")


def find_sharding(name: str) -> Any:
    mesh = plugrt.make_mesh((2, 2), ("x", "y"))
    found = {
        "tiles": NamedSharding(mesh, P("x", "y")),
        "rows": NamedSharding(mesh, P("x")),
        "whole": NamedSharding(mesh, P()),
        "slices": PmapSharding(devices()[:4]),
        "places": PositionalSharding(devices()[:4]).reshape(4, 1, 1),
    }
    return found[name]


@behaviour(110, "reading gathers once: each part one time, and what is whole from one device")
@pytest.mark.parametrize("name", NAMES)
def test_one_gather(name: str) -> None:
    x = plugrt.device_put(A, find_sharding(name))
    events: list[int] = []

    def listen(event: str, duration: float, /, **of: Any) -> None:
        if event == monitoring.READ:
            events.append(of["bytes"])

    monitoring.register_event_duration_secs_listener(listen)
    try:
        with watch(plugrt.get_backend(), "read") as reads:
            first = np.asarray(x)
            assert np.shares_memory(first, np.asarray(x))
            said, numbers = repr(x), x.tolist()
        assert (said, numbers) == (repr(plugrt.device_put(A)), A.tolist())
    finally:
        monitoring.unregister_event_duration_listener(listen)
    assert not first.flags.writeable
    np.testing.assert_array_equal(first, A)
    assert len([each for each in reads if each.method == "to_host"]) == {"whole": 1, "rows": 2}.get(
        name, 4
    )
    assert events[0] == A.nbytes


@behaviour(110, "arrays over devices print as they do on one")
@pytest.mark.parametrize("name", NAMES)
def test_printing(name: str) -> None:
    x, alone = plugrt.device_put(A, find_sharding(name)), plugrt.device_put(A)
    assert (repr(x), str(x), f"{x}") == (repr(alone), str(A), str(A))


@behaviour(110, "deleting or donating an array over devices ends its parts, not what others share")
@pytest.mark.parametrize("name", NAMES)
def test_deletion(name: str) -> None:
    sharding = find_sharding(name)
    x = plugrt.device_put(A, sharding)
    parts = [shard.data for shard in x.addressable_shards]
    x.delete()
    assert x.is_deleted()
    assert [part.is_deleted() for part in parts] == [True] * 4
    x.delete()  # a second time does nothing
    uses = (np.asarray, lambda x: x + 1, lambda x: x[0], lambda x: x.addressable_shards[0].data)
    for use in uses:
        with pytest.raises(RuntimeError, match="deleted"):
            use(x)
    assert (x.shape, x.sharding) == (A.shape, sharding)  # its type is still known
    assert not any(array is x for array in live_arrays())
    y = plugrt.device_put(A, sharding)
    copied = plugrt.device_put(y, sharding, may_alias=False)
    shared = plugrt.jit(lambda y: (y, y[0] + 1))(y)[0]
    y.delete()
    np.testing.assert_array_equal(copied, A)
    np.testing.assert_array_equal(shared, A)
    whole = plugrt.device_put(copied, devices()[5], donate=True)
    assert copied.is_deleted()
    np.testing.assert_array_equal(whole, A)
