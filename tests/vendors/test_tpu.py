"""The tpu plugin with the real libtpu, on machines without a TPU.

Each test that loads libtpu does so in a child process.
"""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plugrt_tpu import hardware
from support.distributions import run_cli, run_python
from support.programs import DOT, printed
from support.requirements import needs_package
from support.vendor_plugins import check_choice_without_hardware

pytestmark = [
    needs_package("libtpu", "vendors"),
    pytest.mark.skipif(hardware.detect().is_tpu_machine, reason="this machine has TPUs"),
]

BARE = """
import os
for name in [n for n in os.environ if n.startswith(("TPU_", "ALLOW_MULTIPLE", "TF_CPP"))]:
    del os.environ[name]
"""
LOCKED = BARE + "os.environ['ALLOW_MULTIPLE_LIBTPU_LOAD'] = '0'  # as where there are chips\n"


def log_files() -> set[Path]:
    return set(Path("/tmp").glob("tpu_driver*")) | set(Path("/tmp").glob("tpu_logs/*"))


def test_topologies_by_name() -> None:
    names = {
        "v2:2x2": 8, "v3:2x2": 8, "v4:2x2x1": 8, "v4-8": 8, "v5p:2x2x1": 4, "v5e:1x1": 1,
        "v5e:2x2": 4, "v5litepod-8": 8, "TPU v5e:4x4": 16, "v6e-4": 4, "trillium:2x2": 4,
        "tpu7x:2x2x1": 8,
    }  # fmt: skip
    done = run_python(
        """
        import json, sys, plugrt
        names = json.loads(sys.argv[1])
        print(json.dumps({n: len(plugrt.topology("tpu", n).devices) for n in names}))
        """,
        arguments=(json.dumps(list(names)),),
        ALLOW_MULTIPLE_LIBTPU_LOAD="1",
    )
    assert printed(done) == names


def test_a_topology_starts_no_client_asks_no_network_and_writes_no_log() -> None:
    before = log_files()
    start = time.monotonic()
    done = run_python(
        BARE
        + """
import json, os, socket
os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"
def refuse(*arguments): raise AssertionError("a connection was made")
socket.create_connection = refuse
import plugrt
found = plugrt.topology("tpu:v5e:2x2")
compiled = plugrt.compile(os.sys.argv[1], topology=found)
row = next(r for r in plugrt.plugins.table() if r.name == "tpu")
left = sorted(n for n in os.environ if n.startswith("TPU_"))
print(json.dumps([row.state, row.client is None, left, len(compiled.serialize()) > 1000]))
""",
        arguments=(DOT,),
    )
    assert printed(done) == ["loaded", True, [], True]
    assert time.monotonic() - start < 25  # one metadata query needs 29 s
    assert done.stderr == ""
    assert log_files() == before


def test_how_libtpu_divides_is_read_back_and_auto_which_it_lacks_is_refused() -> None:
    done = run_python(
        """
        import numpy as np, plugrt
        from plugrt.sharding import AUTO, NamedSharding, PartitionSpec as P
        mesh, x = plugrt.make_mesh((2, 2), ("x", "y")), plugrt.ShapeDtypeStruct((8, 8), np.float32)
        rows = NamedSharding(mesh, P("x"))
        def compiled(asked):
            f = plugrt.jit(lambda v: v + v.T, in_shardings=asked)
            return f.lower(x).compile(topology="tpu:v5e:2x2")
        print(compiled(rows).input_shardings == ((rows,), {}), compiled(rows).output_shardings.spec)
        try:
            compiled(AUTO(mesh))
        except NotImplementedError as error:
            print(error)
        """,
        ALLOW_MULTIPLE_LIBTPU_LOAD="1",
        JAX_NUM_CPU_DEVICES="4",
    )
    read, refused = done.stdout.splitlines()
    assert read.startswith("True P("), done.stderr
    assert "(capability auto_partitioning)" in refused


def test_options_and_refusals() -> None:
    done = run_python(
        """
        import json, plugrt
        from plugrt.errors import InvalidArgument
        print(len(plugrt.topology("tpu", "v5e:3x3", chips_per_host_bounds=[3, 3, 1]).devices))
        print(len(plugrt.topology("tpu", "v5e:2x2", num_slices=2).devices))
        said = []
        for name, options in [("v5e:3x3", {}), ("v9:2x2", {}), ("v5e:2x2", {"nosuch": 1})]:
            try:
                plugrt.topology("tpu", name, **options)
            except InvalidArgument as error:
                said.append(str(error))
        print(json.dumps(said))
        """,
        ALLOW_MULTIPLE_LIBTPU_LOAD="1",
    )
    shape, generation, option = printed(done)
    assert done.stdout.split()[:2] == ["9", "8"]
    assert "add the option chips_per_host_bounds=3,3,1" in shape
    assert "Invalid TPU external name" in generation
    assert "GENERATION:SHAPE" in generation
    assert "nosuch" in option


def test_without_a_tpu_the_reason_is_in_the_table_and_the_cpu_is_chosen() -> None:
    check_choice_without_hardware("tpu", "libtpu", "no TPU chip")


def test_a_forced_start_fails_with_the_words_of_libtpu() -> None:
    done = run_python(
        """
        import plugrt
        try:
            plugrt.devices()
        except plugrt.errors.PluginUnavailable as error:
            print(error)
        """,
        JAX_PLATFORMS="tpu",
        JAX_FORCE_TPU_INIT="1",
        ALLOW_MULTIPLE_LIBTPU_LOAD="1",
    )
    assert "No jellyfish device found" in done.stdout, done.stderr
    assert done.returncode == 0


def test_the_lock_of_another_process_is_explained_and_nothing_aborts(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    holder = subprocess.Popen(
        [sys.executable, "-c",
         LOCKED + "import plugrt, sys, time\n"
         "plugrt.topology('tpu:v5e:2x2')\nopen(sys.argv[1], 'w').close()\ntime.sleep(60)",
         str(ready)],
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while not ready.exists():
            assert holder.poll() is None, "the process that should hold the lock has ended"
            assert time.monotonic() < deadline
            time.sleep(0.05)
        done = run_python(
            LOCKED
            + """
import plugrt
for _ in range(2):  # the second time the library must not be asked again
    try:
        plugrt.topology("tpu:v5e:2x2")
    except plugrt.errors.PluginBroken as error:
        print(error)
"""
        )
        beside = run_python(
            BARE
            + """
import plugrt
print(len(plugrt.topology("tpu:v5e:2x2").devices))
"""
        )
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == second
    assert f"process {holder.pid} (" in first
    assert "ALLOW_MULTIPLE_LIBTPU_LOAD=1" in first
    assert beside.stdout.strip() == "4", beside.stderr


def test_the_artifact_is_refused_by_other_backends(tmp_path: Path) -> None:
    file = tmp_path / "dot.mlir"
    file.write_text(DOT)
    out = tmp_path / "dot.tpu"
    done = run_cli(
        "compile", str(file), "--topology", "tpu:v5e:2x2", "-o", str(out),
        ALLOW_MULTIPLE_LIBTPU_LOAD="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    refused = run_python(
        """
        import sys, plugrt
        saved = open(sys.argv[1], "rb").read()
        for name in ("xla_cpu", "cpu"):
            try:
                plugrt.get_backend(name).deserialize_executable(saved)
            except plugrt.errors.PlugrtError as error:
                print(error)
        """,
        arguments=(str(out),),
    )
    assert refused.returncode == 0, refused.stderr
    assert "for the platform 'tpu'; this backend is 'cpu'" in refused.stdout.splitlines()[0]
    assert len(refused.stdout.splitlines()) == 2


@pytest.mark.parametrize("name", ["tpu", "mytpu"])
@pytest.mark.parametrize("environ", ["bare", "quiet"])
def test_topologies_of_a_library_that_only_the_environment_names(
    tmp_path: Path, name: str, environ: str
) -> None:
    """Earlier, a trial with a client was part of loading: no chip, or 20 s of network waits."""
    spec = importlib.util.find_spec("libtpu")
    assert spec is not None
    assert spec.origin is not None
    library = Path(spec.origin).with_name("libtpu.so")
    done = run_python(
        (BARE if environ == "bare" else "")
        + f"""
import json, plugrt
found = plugrt.topology({name!r}, "v5e:2x2")
row = next(r for r in plugrt.plugins.table() if r.name == {name!r} and r.source == "environment")
print(json.dumps([len(found.devices), row.state, row.client is None]))
""",
        PJRT_NAMES_AND_LIBRARY_PATHS=f"{name}:{library}",
        PLUGRT_CACHE_DIR=str(tmp_path),
    )
    assert printed(done) == [4, "loaded", True]
