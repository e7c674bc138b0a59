"""Programs over a mesh: memory of donated arguments, and other memories than the default one."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices
from plugrt.errors import ArgumentMismatch, Unimplemented, UnknownPlatform
from plugrt.memory import Space
from plugrt.sharding import NamedSharding, PmapSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour

A = np.arange(64, dtype=np.float32).reshape(8, 8)
HOST = "pinned_host"


def over(*entries: Any, kind: str | None = None) -> NamedSharding:
    mesh = plugrt.make_mesh((4, 2), ("x", "y"))
    return NamedSharding(mesh, P(*entries), memory_kind=kind)


def addresses(x: Any) -> list[int]:
    """Returns the address of each device's part."""
    return [shard.data.unsafe_buffer_pointer() for shard in x.addressable_shards]


@pytest.fixture
def host_memory() -> None:
    if HOST not in [memory.kind for memory in devices()[0].memories()]:
        pytest.skip(f"no {HOST} here")


@behaviour(105, "donation over a mesh: parts are taken in place, wherever the argument lay before")
def test_donation() -> None:
    f = plugrt.jit(lambda v: v * 2, donate_argnums=0, in_shardings=over("x"))
    for given in (
        plugrt.device_put(A, over("x")),
        plugrt.device_put(A, over("x", None)),
        plugrt.device_put(A),
    ):
        before = addresses(given)
        doubled = f(given)
        np.testing.assert_array_equal(doubled, 2 * A)
        assert given.is_deleted()
        if type(devices()[0]).__module__.startswith("plugrt_cpu") and len(before) > 1:
            assert addresses(doubled) == before
        with pytest.raises(RuntimeError, match="donated"):
            np.asarray(given)
    other = plugrt.jit(lambda v: v + 1, donate_argnums=0, out_shardings=over("x"))
    x = plugrt.device_put(A, over("y"))
    with pytest.warns(UserWarning, match=r"not usable: float32\[8,8\]"):
        np.testing.assert_array_equal(other(x), A + 1)
    assert not x.is_deleted()  # no result has parts of this size
    # Another array that shares the memory keeps it.
    x = plugrt.device_put(A, over("x"))
    same = plugrt.device_put(x, over("x", None))
    np.testing.assert_array_equal(f(x), 2 * A)
    np.testing.assert_array_equal(same, A)
    both = plugrt.jit(lambda v, w: v + w, donate_argnums=(0, 1))
    x, y = plugrt.device_put(A, over("x")), plugrt.device_put(A, over("x"))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        np.testing.assert_array_equal(both(x, y), 2 * A)
    assert (x.is_deleted(), y.is_deleted(), len(said)) == (True, False, 1)
    refused = plugrt.device_put(A, over("y"))
    with pytest.raises(ArgumentMismatch, match="is sharded as"):
        f(refused)
    assert not refused.is_deleted()


@behaviour(105, "arguments in another memory: taken there, from there, and refused where not")
def test_arguments_in_another_memory(host_memory: None) -> None:
    x = plugrt.device_put(A, over("x", kind=HOST))
    assert (x + 1).sharding == over("x")
    np.testing.assert_array_equal(x + 1, A + 1)
    f = plugrt.jit(lambda v: v * 2, in_shardings=over("x", kind=HOST))
    for given in (A, plugrt.device_put(A), x):
        np.testing.assert_array_equal(f(given), 2 * A)
    compiled = f.lower(A).compile()
    assert compiled.input_shardings[0] == (over("x", kind=HOST),)
    np.testing.assert_array_equal(compiled(x), 2 * A)
    elsewhere = plugrt.device_put(A, over("x"))
    for call in (f, compiled):
        with pytest.raises(ArgumentMismatch, match=f"memory_kind='{HOST}'"):
            call(elsewhere)


@behaviour(
    105,
    "results in another memory, as `out_shardings` or `device_put` within say; refused where the "
    "backend does not state that it puts them there",
)
@pytest.mark.parametrize("way", ["out_shardings", "a sharding within", "a space within"])
def test_results_in_another_memory(host_memory: None, way: str) -> None:
    there = over("x", kind=HOST)
    f, expected = {
        "out_shardings": (plugrt.jit(lambda v: v * 2, out_shardings=there), there),
        "a sharding within": (plugrt.jit(lambda v: plugrt.device_put(v * 2, there)), there),
        "a space within": (plugrt.jit(lambda v: plugrt.device_put(v * 2, Space.Host)), there),
    }[way]
    x = plugrt.device_put(A, over("x"))
    if not type(devices()[0]).__module__.startswith("plugrt_cpu"):
        with pytest.raises(Unimplemented, match=r"to memories. device_put the result there"):
            f(x)
        return
    result = f(x)
    assert result.sharding == expected
    np.testing.assert_array_equal(result, 2 * A)
    assert float(xp.sum(result)) == 2 * A.sum()


def test_text_for_devices_without_that_memory() -> None:
    """As in JAX, it has the attribute, and the custom call that makes XLA move a result."""
    f = plugrt.jit(lambda v: (plugrt.device_put(v * 2, Space.Host), v + 1))
    try:
        [device, *_] = devices("numpy")
    except UnknownPlatform:
        pytest.skip("no numpy backend here")
    assert HOST not in [memory.kind for memory in device.memories()]
    with plugrt.default_device(device):
        for text in (f.lower(A).as_text(), f.trace(A).lower(lowering_platforms=("tpu",)).as_text()):
            main = next(line for line in text.splitlines() if "@main" in line)
            assert main.count('mhlo.memory_kind = "pinned_host"') == 1
            [placed] = re.findall(
                r"(%\S+) = stablehlo.custom_call @annotate_device_placement", text
            )
            assert f"return {placed}, " in text


@behaviour(105, "a memory Space is a target for arrays over a mesh, which stay divided")
def test_spaces(host_memory: None) -> None:
    x = plugrt.device_put(A, over("x"))
    there = plugrt.device_put(x, Space.Host)
    assert there.sharding == over("x", kind=HOST)
    np.testing.assert_array_equal(there, A)
    back = plugrt.device_put(there, Space.Device)
    assert back.sharding.is_equivalent_to(over("x"), 2)
    np.testing.assert_array_equal(plugrt.jit(lambda v: v + 1)(back), A + 1)
    of_pmap = plugrt.device_put(plugrt.pmap(lambda v: v)(A[:2]), Space.Host)
    assert of_pmap.sharding == PmapSharding(plugrt.devices()[:2]).with_memory_kind(HOST)
    np.testing.assert_array_equal(of_pmap, A[:2])
