"""Tests that need a process of their own: imports, stderr, exit, JAX in the same process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping

import pytest

from support.apart import runs_apart
from support.effort import EFFORT

pytestmark = runs_apart("lifetimes")

PUT_AND_ADD = """
import numpy as np
from plugrt.interface import CompileOptions, Program
from plugrt_cpu import plugin
ADD = b'''module @add {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}'''
def add(client):
    loaded = client.compile(Program(ADD), CompileOptions())
    ones = [client.buffer_from_host(np.ones(4, "f4"), client.devices()[0])]
    return loaded.execute([ones, ones])[0][0]
"""


def python(
    code: str, environ: Mapping[str, str | None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the code after `PUT_AND_ADD` in a fresh interpreter; None removes a variable."""
    variables = {**os.environ, "JAX_PLATFORMS": "cpu"}
    for name, value in (environ or {}).items():
        variables.pop(name, None)
        if value is not None:
            variables[name] = value
    return subprocess.run(
        [sys.executable, "-c", PUT_AND_ADD + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=variables,
        timeout=120,
        check=False,
    )


def output(code: str, environ: Mapping[str, str | None] | None = None) -> str:
    """Returns the output of the code, which must succeed and leave stderr empty."""
    done = python(code, environ)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_quiet_by_default_and_the_environment_untouched() -> None:
    code = """
        import os
        before = dict(os.environ)
        client = plugin.create_client({"num_devices": 4})
        print(add(client).to_host().tolist(), dict(os.environ) == before)"""
    assert output(code, {"TF_CPP_MIN_LOG_LEVEL": None}) == "[2.0, 2.0, 2.0, 2.0] True"


def test_the_users_log_level_is_kept() -> None:
    code = """
        import os
        plugin.create_client({"num_devices": 4})
        print(os.environ["TF_CPP_MIN_LOG_LEVEL"])"""
    done = python(code, {"TF_CPP_MIN_LOG_LEVEL": "0"})
    assert done.stdout.strip() == "0"
    assert "device count: total=4" in done.stderr


def test_xla_flags_give_the_device_count() -> None:
    code = "print(len(plugin.create_client({}).devices()))"
    flags = "--xla_force_host_platform_device_count=3"
    assert output(code, {"XLA_FLAGS": flags}) == "3"
    assert output(code, {"XLA_FLAGS": None}) == "1"


def test_one_device_needs_no_jax() -> None:
    """jaxlib imports JAX within some calls; plugrt's avoid them."""
    code = """
        import sys, ml_dtypes
        client = plugin.create_client({"num_devices": 2})
        result = add(client)
        result.ready_event().wait()
        result.block_until_ready()
        result.to_host(), result.unsafe_pointer(), result.on_device_size_in_bytes()
        copy = result.copy_to_device(client.devices()[1])
        copy.copy_to_memory(client.devices()[1].memory("pinned_host")).to_host()
        client.buffer_from_dlpack(result.to_dlpack(), client.devices()[0]).to_host()
        half = client.buffer_from_host(np.ones(2, ml_dtypes.bfloat16), client.devices()[0])
        half.to_host(), half.to_dlpack()
        loaded = client.compile(Program(ADD), CompileOptions(num_replicas=2))
        both = [client.buffer_from_host(np.ones(4, "f4"), d) for d in client.devices()]
        for buffer in loaded.execute([both, both])[0]:
            buffer.block_until_ready()
        import plugrt  # whose calls write small host arrays to memory that jaxlib aliases
        plugrt.jit(lambda x: x + 1)(np.ones(2, "f4"))
        plugrt.pmap(lambda x: x + 1, devices=plugrt.devices()[:1])(np.ones((1, 2), "f4"))
        print("jax" in sys.modules)"""
    assert output(code) == "False"


@pytest.mark.parametrize("first", ["jax", "plugrt"])
def test_jax_works_beside_us(first: str) -> None:
    jax = """
import jax, jax.numpy as jnp
def with_jax():
    x = jnp.arange(4.0)
    assert jax.jit(lambda a: a + 1)(x).tolist() == [1, 2, 3, 4]
    assert x.dtype == "float32" and not jax.config.jax_enable_x64
    mesh = jax.make_mesh((2,), ("i",))
    where = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    y = jax.device_put(x, where)
    assert (y * 2).tolist() == [0, 2, 4, 6]
    assert (y.addressable_shards[1].data + 1).tolist() == [3, 4]
    assert jnp.asarray(np.from_dlpack(x)).tolist() == [0, 1, 2, 3]
"""
    ours = """
client = plugin.create_client({"num_devices": 4})
def with_us():
    assert add(client).to_host().tolist() == [2] * 4
    loaded = client.compile(Program(ADD), CompileOptions(num_replicas=4))
    ones = [client.buffer_from_host(np.ones(4, "f4"), d) for d in client.devices()]
    for _ in range(2):
        (shards,) = loaded.execute([ones, ones])
        assert [b.to_host().tolist() for b in shards] == [[2] * 4] * 4
    wide = client.buffer_from_host(np.ones(3), client.devices()[3])
    assert wide.to_host().dtype == "float64"
"""
    steps = [jax + "with_jax()", ours + "with_us()"]
    code = "\n".join(steps if first == "jax" else steps[::-1])
    assert (
        output(code + "\nwith_jax(); with_us(); print('ok')", {"JAX_NUM_CPU_DEVICES": "2"}) == "ok"
    )


WORK = b"""module @work {
  func.func public @main(%a: tensor<500x500xf32>) -> tensor<500x500xf32> {
    %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
      : (tensor<500x500xf32>, tensor<500x500xf32>) -> tensor<500x500xf32>
    return %0 : tensor<500x500xf32>
  }
}"""


@pytest.mark.parametrize("devices", [1, 4])
@pytest.mark.parametrize("callback", [False, True])
def test_exit_with_live_buffers_and_pending_work(devices: int, callback: bool) -> None:
    code = f"""
        client = plugin.create_client({{"num_devices": {devices}}})
        loaded = client.compile(Program({WORK!r}), CompileOptions(num_replicas={devices}))
        x = [client.buffer_from_host(np.eye(500, dtype="f4"), d) for d in client.devices()]
        view = x[0].to_host()
        source = np.zeros(1 << 20, "f4")
        put = client.buffer_from_host(source, client.devices()[0], None, 2)
        for _ in range(10):
            (x,) = loaded.execute([x])
        if {callback}:
            x[0].ready_event().on_ready(lambda error: print("ready", error))
        import sys
        sys.modules["kept"] = [client, loaded, x, view, put]  # outlives the module's globals"""
    for _ in range(EFFORT):
        assert output(code) == ("ready None" if callback else "")


def test_close() -> None:
    code = """
        import gc, weakref
        from plugrt.errors import FailedPrecondition
        client = plugin.create_client({"num_devices": 2})
        result = add(client)
        loaded = client.compile(Program(ADD), CompileOptions())
        client.close()
        client.close()
        assert result.to_host().tolist() == [2] * 4
        assert loaded.execute([[result], [result]])[0][0].to_host().tolist() == [4] * 4
        for call in (
            lambda: client.compile(Program(ADD), CompileOptions()),
            lambda: client.buffer_from_host(np.ones(4), client.devices()[0]),
            lambda: client.deserialize_executable(b""),
        ):
            try:
                call()
            except FailedPrecondition as error:
                assert "closed" in str(error)
            else:
                raise AssertionError(call)
        gone = weakref.ref(client)
        del client, result, loaded, call
        gc.collect()
        print(gone())"""
    assert output(code) == "None"


def test_clients_are_really_freed() -> None:
    code = """
        import gc, pathlib
        def threads():
            return len(list(pathlib.Path("/proc/self/task").iterdir()))
        def once():
            client = plugin.create_client({"num_devices": 4})
            add(client).to_host()
            client.close()
        once(); gc.collect(), gc.collect()
        before = threads()
        for _ in range(20):
            once()
        gc.collect(), gc.collect()  # jaxlib's objects go one round after ours
        assert threads() <= before + 2, (before, threads())
        print("ok")"""
    assert output(code) == "ok"


@pytest.mark.parametrize(
    "style", ["import jax", "from jax import numpy", "__import__('jax.numpy')"]
)
def test_programs_of_jax_that_comes_later_have_their_lines(style: str) -> None:
    pytest.importorskip("jax")
    done = python(
        f"""
        import plugrt
        plugrt.jit(lambda x: x + 1)(1.0)
        {style}
        import jax
        print(jax.jit(lambda x: x * 2).lower(1.0).as_text(debug_info=True))
        """
    )
    assert 'loc("<string>":' in done.stdout, done.stdout + done.stderr
