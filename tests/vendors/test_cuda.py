"""The cuda plugin with a real PJRT library for CUDA, on machines without a GPU.

Each test that loads the library does so in a child process.
"""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest

from plugrt_cuda import gpu_targets, hardware, library
from support.distributions import run_cli, run_python
from support.programs import DOT, printed
from support.requirements import needs
from support.vendor_plugins import check_choice_without_hardware

pytestmark = [
    needs(library.installed(), "jax-cuda12-pjrt or jax-cuda13-pjrt", session="vendors"),
    pytest.mark.skipif(hardware.detect().available, reason="this machine has an NVIDIA driver"),
]

each_library = pytest.mark.parametrize(
    "path", [found.path for found in library.installed()], ids=lambda p: Path(p).parent.name
)


@each_library
def test_every_gpu_that_is_known_compiles_for_its_own_machine_code(path: str) -> None:
    """An incomplete description would end the child here, not the test run."""
    done = run_python(
        """
        import json, re, sys, plugrt
        from plugrt_cuda.gpu_targets import TARGETS
        found = {}
        for name in TARGETS:
            compiled = plugrt.compile(sys.argv[1], topology=f"cuda:{name}")
            [code] = set(re.findall(rb"sm_([0-9]+)", compiled.serialize()))
            memory = compiled.memory_analysis()
            found[name] = [int(code), memory.argument_size_in_bytes, memory.output_size_in_bytes]
        print(json.dumps(found))
        """,
        arguments=(DOT,),
        timeout=120,
        PLUGRT_CUDA_LIBRARY_PATH=path,
    )
    sizes = [4 * (256 * 512 + 512 * 128), 4 * 256 * 128]
    assert printed(done) == {
        name: [10 * t.architecture.major + t.architecture.minor, *sizes]
        for name, t in gpu_targets.TARGETS.items()
    }


def test_several_devices() -> None:
    done = run_python(
        """
        import json, plugrt
        found = [plugrt.topology("cuda", n) for n in ("h100:8", "a100:2x2x4")]
        print(json.dumps([[len(t.devices), t.devices[0].kind] for t in found]))
        """
    )
    assert printed(done) == [[8, "NVIDIA H100 80GB HBM3"], [16, "NVIDIA A100-SXM4-80GB"]]


def test_a_gpu_of_ones_own_and_one_that_would_end_the_process() -> None:
    done = run_python(
        """
        import json, sys, plugrt
        from plugrt_cuda.gpu_targets import TARGETS
        text = TARGETS["h100"].text().replace("NVIDIA H100", "Mine").replace("132", "66")
        print(plugrt.topology("cuda", "", target_config=text).devices[0].kind)
        try:
            plugrt.topology("cuda", "", target_config='platform_name: "CUDA"')
        except plugrt.errors.InvalidArgument as error:
            print(error)
        """
    )
    mine, refused = done.stdout.splitlines()
    assert mine == "Mine 80GB HBM3"
    assert "lacks threads_per_block_limit" in refused


@each_library
def test_a_result_for_the_memory_of_the_host_is_placed_there(path: str) -> None:
    """With only the result's attribute the library would leave the result on the GPU."""
    done = run_python(
        """
        import json, numpy as np, plugrt
        from plugrt.memory import Space
        f = plugrt.jit(lambda a: (plugrt.device_put(a + 1, Space.Host), a * 2))
        lowered = f.lower(plugrt.ShapeDtypeStruct((8,), np.float32))
        executable = lowered.compile(topology="cuda:h100").runtime_executable()
        print(json.dumps(list(executable.output_memory_kinds)))
        """,
        PLUGRT_CUDA_LIBRARY_PATH=path,
    )
    assert printed(done) == ["pinned_host", "device"]


@each_library
def test_a_trace_is_read_from_where_the_profiler_has_it(path: str) -> None:
    """Without a GPU it has the library's own events; with options of no level, nothing."""
    done = run_python(
        """
        import json, sys
        from plugrt import capi
        from plugrt.capi.extensions.profiler import Profiler, encode_options
        from plugrt.wire.protobuf import messages
        library, found = capi.load_library(sys.argv[1]), []
        for options in (encode_options({}), b""):
            profiler = Profiler(library, options)
            profiler.start()
            profiler.stop()
            planes = messages(profiler.collect(), 1)
            found.append([bytes(name).decode() for p in planes for name in messages(p, 2)])
        print(json.dumps(found))
        """,
        arguments=(path,),
    )
    named, empty = printed(done)
    assert "/host:metadata" in named
    assert empty == []


def test_figures_that_the_library_does_not_state_are_counted(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = tmp_path_factory.mktemp("cuda") / "dot.mlir"
    file.write_text(DOT)
    done = run_cli("compile", str(file), "--topology", "cuda:h100", "--json", "--text")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["flops"] == pytest.approx(2 * 256 * 512 * 128, rel=0.05)
    assert facts["bytes_accessed"] >= 4 * (256 * 512 + 512 * 128 + 256 * 128)
    assert "HloCostAnalysis" in facts["cost_source"]
    assert facts["memory"]["argument_size_in_bytes"] == 4 * (256 * 512 + 512 * 128)
    assert facts["text"].startswith("HloModule")
    assert facts["serialized_bytes"] > 1000


def test_without_a_gpu_the_reason_is_in_the_table_and_the_cpu_is_chosen() -> None:
    check_choice_without_hardware("cuda", "xla_cuda_plugin", "no NVIDIA driver")


def test_a_driver_without_gpu_is_told_with_the_words_of_the_library() -> None:
    done = run_python(
        """
        from plugrt.plugins import Availability
        from plugrt_cuda import hardware
        hardware.detect = lambda *_: Availability.yes()
        import plugrt
        print(plugrt.default_backend())
        """,
        JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1",
        PLUGRT_PLUGINS_ALLOW="cpu,cuda",
    )
    assert done.stdout.strip() == "cpu"
    assert "the NVIDIA driver is there but offers no GPU" in done.stderr
    assert "No visible GPU devices" in done.stderr


@pytest.mark.parametrize("name", ["xla_cuda12", "xla_cuda13"])
def test_a_package_made_for_jax_is_listed_and_unavailable_with_its_reason(name: str) -> None:
    entries = importlib.metadata.entry_points(group="jax_plugins", name=name)
    if not entries:
        pytest.skip(f"no package offers {name} to JAX")
    [entry] = entries
    assert entry.dist is not None
    done = run_python(
        """
        import json, sys, plugrt
        row = next(r for r in plugrt.plugins.table() if r.name == sys.argv[1])
        listed = [row.state, row.distribution, row.version]
        try:
            plugrt.devices()
        except plugrt.errors.PluginUnavailable as error:
            said = str(error)
        print(json.dumps([listed, row.state, row.reason, said]))
        """,
        arguments=(entry.name,),
        JAX_PLATFORMS=entry.name,
        JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1",
    )
    listed, state, reason, said = printed(done)
    assert listed == ["found", entry.dist.name, entry.dist.version]
    assert state == "unavailable"
    assert "No visible GPU devices" in reason
    assert "No visible GPU devices" in said
    assert f"JAX_PLATFORMS={entry.name} requests" in said
