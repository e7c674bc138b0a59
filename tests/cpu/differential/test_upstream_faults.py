"""Faults of JAX that random calls exclude: a test that fails here shows that they may return."""

from __future__ import annotations

import signal
import sys

import numpy as np

import plugrt
from support import children
from support.markdown import ROOT
from support.requirements import needs_jax


@needs_jax
def test_an_array_donated_to_device_put_ends_the_process() -> None:
    command = [sys.executable, ROOT / "docs/findings/device_put_donate.py"]
    done = children.run(command, timeout=120)
    assert done.returncode == -signal.SIGSEGV, done.stdout + done.stderr


@needs_jax
def test_a_scalar_donated_from_pinned_memory_ends_the_process() -> None:
    command = [sys.executable, ROOT / "docs/findings/donate_pinned_scalar.py"]
    done = children.run(command, timeout=120)
    assert done.returncode == -signal.SIGABRT, done.stdout + done.stderr


@needs_jax
def test_a_bitwise_and_with_a_narrowed_argument_ends_the_process() -> None:
    command = [sys.executable, ROOT / "docs/findings/and_of_narrowed.py"]
    done = children.run(command, timeout=120)
    assert done.returncode == -signal.SIGSEGV, done.stdout + done.stderr


@needs_jax
def test_an_ordered_call_in_nested_regions_ends_the_process() -> None:
    command = [sys.executable, ROOT / "docs/findings/ordered_call_in_nested_shard_map.py"]
    done = children.run(command, timeout=120)
    assert done.returncode == -signal.SIGABRT, done.stdout + done.stderr
    assert "Check failed: buffer != nullptr" in done.stderr


@needs_jax
def test_a_second_pmap_over_devices_in_another_order_ends_the_process() -> None:
    command = [sys.executable, ROOT / "docs/findings/pmap_reversed_mesh.py"]
    done = children.run(command, timeout=120)
    assert done.returncode == -signal.SIGSEGV, done.stdout + done.stderr
    assert "the first result is" in done.stdout


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


@needs_jax
def test_terms_of_sums_are_wrong_and_end_the_process() -> None:
    command = [sys.executable, ROOT / "docs/findings/unreduced_ones.py"]
    done = children.run(command, timeout=120)
    assert "the sum of the terms of ones is: [2. 2.]" in done.stdout
    assert done.returncode == -signal.SIGABRT, done.stdout + done.stderr
    assert "explicit_reshards_util" in done.stderr
