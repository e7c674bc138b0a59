"""plugrt's ahead-of-time compilation against JAX's own way on the same library.

Each side runs in a child process of its own: libraries keep state, and libtpu has a lock.

Same as JAX: `lower`, `compile`, `cost_analysis`; flops and bytes for TPUs and GPUs that are not
there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugrt_cuda import library
from plugrt_cuda.gpu_targets import TARGETS
from support.distributions import run_python
from support.programs import printed
from support.requirements import needs, needs_package

MODEL = """
import json, sys
import numpy as np

def model(np_, x, w, b):
    return np_.sum(np_.tanh(x @ w + b), axis=0)

ARGUMENTS = [((128, 512), np.float32), ((512, 256), np.float32), ((256,), np.float32)]
MEMORY = ["generated_code_size_in_bytes", "argument_size_in_bytes", "output_size_in_bytes",
          "alias_size_in_bytes", "temp_size_in_bytes"]

def report(compiled, cost, **more):
    memory = compiled.memory_analysis()
    sizes = {name: getattr(memory, name) for name in MEMORY}
    print(json.dumps({"cost": dict(cost), "memory": sizes, **more}))
"""
OURS = """
import plugrt
from plugrt import array_api as xp
target = plugrt.topology(sys.argv[1])
arguments = [plugrt.ShapeDtypeStruct(s, d) for s, d in ARGUMENTS]
lowered = plugrt.jit(lambda x, w, b: model(xp, x, w, b)).lower(*arguments)
compiled = lowered.compile(topology=target)
cost = {} if sys.argv[1].startswith("cuda") else compiled.cost_analysis()
report(compiled, cost, size=len(compiled.serialize()))
"""
THEIRS = """
import os, jax
import jax.numpy as jnp
from jax.experimental import topologies
platform, name, options = json.loads(sys.argv[1])
target = topologies.get_topology_desc(name, platform, **options)
sharding = jax.sharding.SingleDeviceSharding(target.devices[0])
arguments = [jax.ShapeDtypeStruct(s, d, sharding=sharding) for s, d in ARGUMENTS]
compiled = jax.jit(lambda x, w, b: model(jnp, x, w, b)).lower(*arguments).compile()
cost = {} if platform == "mine" else compiled.cost_analysis()
report(compiled, cost, size=len(compiled.runtime_executable().serialize()))
"""


def ours(name: str, **environ: str) -> Any:
    return _child(MODEL + OURS, name, environ)


def theirs(platform: str, name: str, options: dict[str, str], **environ: str) -> Any:
    asked = json.dumps([platform, name, options])
    return _child(MODEL + THEIRS, asked, {"JAX_PLATFORMS": "cpu", **environ})


def _child(code: str, argument: str, environ: dict[str, str]) -> Any:
    quiet = {"ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return printed(run_python(code, arguments=(argument,), timeout=120, **quiet, **environ))


@needs_package("libtpu", "vendors")
@pytest.mark.parametrize("name", ["v5e:2x2", "v4:2x2x1"])
def test_tpu_flops_bytes_and_sizes_match_jax(name: str) -> None:
    mine, other = ours(f"tpu:{name}"), theirs("tpu", name, {})
    for figure in ("flops", "bytes accessed", "optimal_seconds"):
        assert mine["cost"][figure] == other["cost"][figure], figure
    assert mine["cost"]["flops"] > 2 * 128 * 512 * 256
    assert mine["memory"] == other["memory"]
    # JAX's compile options, 1 kB, are in its artifact; in ours is the envelope.
    assert abs(mine["size"] - other["size"]) < 4096


@needs(library.installed(), "a PJRT library for CUDA", session="vendors")
@pytest.mark.parametrize(
    ("path", "gpu"),
    [(found.path, gpu) for found in library.installed() for gpu in ("h100", "a100")],
    ids=lambda p: Path(p).parent.name or p,
)
def test_cuda_sizes_match_jax(path: str, gpu: str) -> None:
    options = {"target_config": TARGETS[gpu].text(), "topology": "1x1x1"}
    mine = ours(f"cuda:{gpu}", PLUGRT_CUDA_LIBRARY_PATH=path)
    other = theirs("mine", "", options, PJRT_NAMES_AND_LIBRARY_PATHS=f"mine:{path}")
    assert mine["memory"] == other["memory"]
    assert mine["memory"]["argument_size_in_bytes"] == 4 * (128 * 512 + 512 * 256 + 256)
    assert abs(mine["size"] - other["size"]) < 4096
