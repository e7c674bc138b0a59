"""The plugin object, without jaxlib."""

from __future__ import annotations

import subprocess
import sys

import pytest

from plugrt.interface import HostBufferSemantics
from plugrt_cpu import CpuPlugin, plugin
from support.registries import settings


def test_describes_itself() -> None:
    assert isinstance(plugin, CpuPlugin)
    assert (plugin.name, plugin.priority, plugin.experimental) == ("cpu", 0, False)
    assert plugin.probe().available
    assert "cpu" in repr(plugin)


def test_importing_does_not_import_jaxlib() -> None:
    code = (
        "import sys, plugrt_cpu; plugrt_cpu.plugin.probe();"
        "print([m for m in sys.modules if m.startswith(('jax', 'numpy.ma'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "jax" not in done.stdout


@pytest.mark.parametrize(
    ("environ", "options"),
    [
        ({}, {"asynchronous": True, "collectives": "gloo"}),
        (
            {"JAX_NUM_CPU_DEVICES": "4", "JAX_CPU_ENABLE_ASYNC_DISPATCH": "0"},
            {"asynchronous": False, "collectives": "gloo", "num_devices": 4},
        ),
        (
            {
                "XLA_FLAGS": "--xla_force_host_platform_device_count=3",
                "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "mpi",
            },
            {"asynchronous": True, "collectives": "mpi", "num_devices": 3},
        ),
    ],
)
def test_client_options(environ: dict[str, str], options: dict[str, object]) -> None:
    assert plugin.client_options(settings(**environ)) == options


def test_semantics_are_pjrts() -> None:
    assert [s.value for s in HostBufferSemantics] == [0, 1, 2, 3]
