"""The runtime: copies, memory, and operations without a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import plugrt
import pytest
from plugrt import array_api as xp
from plugrt.errors import Unimplemented

from my_chip.for_plugrt import plugin
from my_chip.runtime import load_runtime

WEIGHTS = np.float32(np.arange(12).reshape(4, 3) / 10)


def network(x: Any, w: Any) -> Any:
    hidden = xp.tanh(x @ w)
    chosen = xp.where(hidden > 0.5, hidden, xp.exp(-hidden))
    return xp.sum(chosen / xp.max(chosen, axis=1, keepdims=True), axis=0)


def test_arrays_stay_on_the_device_between_launches() -> None:
    run = plugrt.jit(network)
    x = plugrt.device_put(np.float32(np.eye(2, 4)))
    w = plugrt.device_put(WEIGHTS)
    run(x, w)
    before = load_runtime().counters(0)
    result = run(x, w)
    after = load_runtime().counters(0)
    assert after["launches"] > before["launches"] + 5
    assert [after[name] - before[name] for name in ("copies_in", "copies_out")] == [0, 0]
    hidden = np.tanh(WEIGHTS[:2])
    chosen = np.where(hidden > 0.5, hidden, np.exp(-hidden))
    expected = (chosen / chosen.max(1, keepdims=True)).sum(0)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5)


def test_memory_is_freed() -> None:
    before = load_runtime().counters(0)
    run = plugrt.jit(lambda x: x + 1)
    x = run(np.float32([1, 2]))
    for _ in range(100):
        x = run(x)
    x.delete()
    after = load_runtime().counters(0)
    assert after["allocations"] <= before["allocations"] + 1  # the constant


def test_an_operation_without_a_kernel_runs_on_numpy() -> None:
    found = plugrt.jit(lambda x: xp.sort(x + x))(np.float32([3, 1, 2]))
    np.testing.assert_array_equal(np.asarray(found), np.float32([2, 4, 6]))


def test_without_numpy_it_is_refused() -> None:
    client = plugin.create_client({"numpy": False})
    lowered = plugrt.jit(xp.sort).lower(np.zeros(3, np.float32))
    program = plugrt.interface.Program(lowered.as_text().encode(), "mlir", "sorted")
    with pytest.raises(Unimplemented, match="no kernel for stablehlo.sort"):
        client.compile(program, plugrt.interface.CompileOptions())
    client.close()
