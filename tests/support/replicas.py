"""Runs a function on several devices of the default backend, one replica each, without pmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plugrt
from plugrt.execution.trees import pytrees
from plugrt.interface import CompileOptions, DeviceAssignment, TensorType
from plugrt.tracing.entry import Parameter
from plugrt.tracing.trace_function import stage


def run_replicas(
    function: Callable[..., Any], axes: dict[str, int], *args: np.ndarray[Any, Any]
) -> Any:
    """Returns the results of ``function`` on ``args[..][i]`` for replica i, stacked."""
    count = int(np.prod(list(axes.values())))
    client = plugrt.get_backend()
    devices = client.addressable_devices()[:count]
    parameters = [Parameter(TensorType(a.shape[1:], a.dtype)) for a in args]
    staged = stage(
        function, parameters, name="replicas", axes=axes, keep_unused=True, forward=False
    )
    options = CompileOptions(
        num_replicas=count, device_assignment=DeviceAssignment(tuple((d.id,) for d in devices))
    )
    program = staged.program_at(client.capabilities.stablehlo_current_version)
    executable = client.compile(program, options)
    shards = [
        tuple(client.buffer_from_host(a[i].copy(), d) for i, d in enumerate(devices)) for a in args
    ]
    outputs: Sequence[Any] = executable.execute(shards)
    stacked = [np.stack([b.to_host() for b in output]) for output in outputs]
    return pytrees.unflatten(staged.out_tree, stacked)
