"""Faults of JAX that random calls exclude: a test that fails here shows that they may return."""

from __future__ import annotations

import re
import signal
import sys

import numpy as np
import pytest

import plugrt
from support import children
from support.markdown import ROOT
from support.requirements import needs_jax


@needs_jax
@pytest.mark.parametrize(
    ("script", "end", "said"),
    [
        ("device_put_donate", signal.SIGSEGV, ""),
        ("donate_pinned_scalar", signal.SIGABRT, ""),
        ("and_of_narrowed", signal.SIGSEGV, ""),
        ("ordered_call_in_nested_shard_map", signal.SIGABRT, "Check failed: buffer != nullptr"),
        ("pmap_reversed_mesh", signal.SIGSEGV, "the first result is"),
        ("unreduced_ones", signal.SIGABRT, r"ones is: \[2. 2.\](?s:.*)explicit_reshards_util"),
    ],
)
def test_a_program_ends_the_process(script: str, end: int, said: str) -> None:
    done = children.run([sys.executable, ROOT / f"docs/findings/{script}.py"], timeout=120)
    assert done.returncode == -end, done.stdout + done.stderr
    assert re.search(said, done.stdout + done.stderr)


def test_a_pmap_over_devices_in_another_order_is_right_each_time() -> None:
    mesh = plugrt.sharding.Mesh(np.array(plugrt.devices()[::-1]), ("x",))
    divided = plugrt.sharding.NamedSharding(mesh, plugrt.sharding.PartitionSpec("x"))
    x = plugrt.device_put(np.arange(mesh.size), divided)
    add = plugrt.pmap(lambda v: v + 1)
    for _ in range(3):
        assert np.asarray(add(x)).tolist() == [*range(1, mesh.size + 1)]


def test_a_scalar_donated_from_pinned_memory_is_deleted() -> None:
    pinned = plugrt.sharding.SingleDeviceSharding(plugrt.devices()[0], memory_kind="pinned_host")
    x = plugrt.device_put(np.int32(2), pinned)
    assert plugrt.jit(lambda x: x * 3, donate_argnums=0)(x) == 6
    assert x.is_deleted()


def test_arrays_donated_in_a_pytree_are_deleted() -> None:
    x, y = (plugrt.device_put(np.arange(n), plugrt.devices()[0]) for n in (3, 4))
    moved = plugrt.device_put({"x": x, "y": [y]}, plugrt.devices()[1], donate=True)
    assert x.is_deleted()
    assert y.is_deleted()
    assert np.asarray(moved["y"][0]).tolist() == [0, 1, 2, 3]
