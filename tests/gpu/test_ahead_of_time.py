"""Programs are compiled for an absent GPU, and loaded and run on a present one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.interface import Device
from plugrt_cuda.gpu_targets import TARGETS

A = np.random.default_rng(0).standard_normal((128, 512)).astype(np.float32)


def function(x: Any) -> Any:
    """Returns a sum of products, with a kernel and a reduction."""
    return xp.sum(xp.tanh(x) * 2, axis=0)


def test_a_saved_program_is_loaded_and_run(on_gpu: Device) -> None:
    compiled = plugrt.jit(function).lower(plugrt.ShapeDtypeStruct(A.shape, A.dtype)).compile()
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == A.nbytes
    assert "fusion" in compiled.as_text()
    assert float(str(compiled.cost_analysis()["flops"])) > 0
    loaded = plugrt.compile(compiled.serialize())
    np.testing.assert_allclose(np.asarray(loaded(A)), np.tanh(A).sum(0) * 2, 1e-4, 1e-4)


def test_a_program_compiled_without_the_gpu_runs_on_it(on_gpu: Device) -> None:
    name = next((n for n in sorted(TARGETS, key=len, reverse=True) if n in on_gpu.kind.lower()), "")
    if not name:
        pytest.skip(f"no description of {on_gpu.kind}")
    shape = plugrt.ShapeDtypeStruct(A.shape, A.dtype)
    compiled = plugrt.jit(function).lower(shape).compile(topology=f"cuda:{name}")
    loaded = plugrt.compile(compiled.serialize())
    np.testing.assert_allclose(np.asarray(loaded(A)), np.tanh(A).sum(0) * 2, 1e-4, 1e-4)
