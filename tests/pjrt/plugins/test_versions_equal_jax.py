"""`plugrt.plugins` reports the same versions of cpu and of a library as jax."""

from __future__ import annotations

import pytest

from support.distributions import run_python
from support.xla_cpu import library_path

pytest.importorskip("jax")
pytestmark = pytest.mark.skipif(library_path() is None, reason="needs the wheel xla-cpu-pjrt")

PROGRAM = """
import json
{imports}
answers = {{}}
for name in ("cpu", "mine"):
    answers[name] = [
        bridge.using_pjrt_c_api(name), bridge.backend_pjrt_c_api_version(name),
        bridge.backend_xla_version(name), bridge.backend_stablehlo_version(name),
        host.process_indices(name), bridge.is_known_platform(name),
        bridge.canonicalize_platform(name), bridge.expand_platform_alias(name),
    ]
answers["gpu"] = [bridge.expand_platform_alias("gpu"), bridge.is_known_platform("gpu")]
answers["device"] = bridge.get_device_backend(host.devices("mine")[0]).platform
print(json.dumps(answers))
"""


def test_answers_are_those_of_jax() -> None:
    environ = {
        "PJRT_NAMES_AND_LIBRARY_PATHS": f"mine:{library_path()}",
        "JAX_PLATFORMS": "mine,cpu",
    }
    ours, theirs = (
        run_python(PROGRAM.format(imports=imports), **environ, TF_CPP_MIN_LOG_LEVEL="3")
        for imports in (
            "import plugrt as host; from plugrt import plugins as bridge",
            "import jax as host; from jax._src import xla_bridge as bridge",
        )
    )
    assert ours.stdout.count("mine") == 3, ours.stderr
    # For a backend without the C API newer versions of JAX return (0, 0) instead of None.
    assert ours.stdout == theirs.stdout.replace("[0, 0]", "null"), ours.stderr + theirs.stderr
