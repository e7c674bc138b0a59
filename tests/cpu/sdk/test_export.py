"""The exported cpu plugin: one suite on its client, through a table, and from a library.

Child processes with stock JAX use the table as a capsule, and the library by the environment alone.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt.capi.abi._abi import ffi
from plugrt.errors import DeletedBuffer, ResourceExhausted, Unimplemented
from plugrt.execution.shardings.op_sharding import read_op_sharding
from plugrt.interface import (
    Client,
    CompileOptions,
    DeviceAssignment,
    ExecuteOptions,
    HostBufferSemantics,
    Program,
)
from plugrt.plugins import LibraryPlugin
from plugrt_cpu import plugin as cpu_backend
from plugrt_sdk.export import export_capsule, export_library
from support import children
from support.apart import runs_apart
from support.requirements import needs, needs_jax

TESTS = Path(__file__).parents[2]
OPTIONS: dict[str, Any] = {"num_devices": 4}
ADD = b"""func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %b : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
DONATING = ADD.replace(b"%a: tensor<3xf32>,", b"%a: tensor<3xf32> {tf.aliasing_output = 0 : i32},")
TOO_LARGE = b"""func.func public @main(%a: tensor<3xf32> {tf.aliasing_output = 0 : i32},
    %b: tensor<f32>) -> (tensor<3xf32>, tensor<1125899906842624xf32>) {
  %0 = stablehlo.add %a, %a : tensor<3xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<1125899906842624xf32>
  return %0, %1 : tensor<3xf32>, tensor<1125899906842624xf32>
}"""
ONE = np.float32([1, 2, 3])


def _direct(folder: Path) -> Client:
    return cpu_backend.create_client(OPTIONS)


def _capsule(folder: Path) -> Client:
    capsule = export_capsule(lambda **options: cpu_backend.create_client(options))
    return LibraryPlugin("exported", c_api=capsule).create_client(OPTIONS)


def _library(folder: Path) -> Client:
    path = export_library("cpu", folder / "libpjrt_cpu.so")
    return LibraryPlugin("exported", path).create_client(OPTIONS)


@pytest.fixture(scope="module", params=[_direct, _capsule, _library], ids=lambda f: f.__name__[1:])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Client:
    make: Callable[[Path], Client] = request.param
    return make(tmp_path_factory.mktemp("library"))


def _put(client: Client, array: Any = ONE, device: int = 0) -> Any:
    return client.buffer_from_host(np.asarray(array), client.devices()[device])


def _compile(client: Client, code: bytes = ADD, **options: Any) -> Any:
    return client.compile(Program(code), CompileOptions(**options))


@pytest.mark.parametrize("semantics", HostBufferSemantics)
def test_put_and_get(client: Client, semantics: HostBufferSemantics) -> None:
    source = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
    for view in (source, source.T, source[::-1, :, ::2], source[:, :0], source[0, 0, 0]):
        buffer = client.buffer_from_host(np.array(view), client.devices()[1], None, semantics)
        np.testing.assert_array_equal(buffer.to_host(), view)
        assert buffer.on_device_size_in_bytes() == view.nbytes


def test_launches(client: Client) -> None:
    program = _compile(client)
    for _ in range(20):
        [[y]] = program.execute([(_put(client),), (_put(client),)])
        [[z]] = program.execute([(y,), (y,)])
        y.block_until_ready()
        np.testing.assert_array_equal(z.to_host(), 4 * ONE)


def test_donation(client: Client) -> None:
    program = _compile(client, DONATING)
    x, y = _put(client), _put(client)
    [[kept]] = program.execute([(x,), (y,)], ExecuteOptions(non_donatable_input_indices=(0,)))
    assert not x.is_deleted()
    [[result]] = program.execute([(x,), (y,)])
    assert (x.is_deleted(), y.is_deleted()) == (True, False)
    np.testing.assert_array_equal([kept.to_host(), result.to_host()], [2 * ONE, 2 * ONE])
    with pytest.raises(DeletedBuffer):
        x.to_host()
    with pytest.raises(DeletedBuffer):
        program.execute([(x,), (y,)])


@pytest.mark.parametrize("devices", [1, 4])
def test_a_launch_that_fails_says_why_and_what_it_took(client: Client, devices: int) -> None:
    assignment = DeviceAssignment(tuple((d,) for d in range(devices)))
    program = _compile(client, TOO_LARGE, num_replicas=devices, device_assignment=assignment)
    x, y = ([_put(client, a, d) for d in range(devices)] for a in (ONE, ONE[0]))

    def launch() -> None:
        for shards in program.execute([x, y]):
            for result in shards:
                result.block_until_ready()

    with pytest.raises(ResourceExhausted):
        launch()
    for buffer in x:
        if buffer.is_deleted():
            with pytest.raises(DeletedBuffer, match=r"deleted|donated to a launch"):
                buffer.to_host()
        else:
            np.testing.assert_array_equal(buffer.to_host(), ONE)
    assert devices == 4 or x[0].is_deleted(), "jaxlib takes the memory before it fails"
    np.testing.assert_array_equal([buffer.to_host() for buffer in y], [ONE[0]] * devices)


def test_an_argument_that_went_without_the_host_s_knowledge_is_named(tmp_path: Path) -> None:
    """As if another thread deleted it: the message says so, and not that the library refused."""
    client = _capsule(tmp_path)
    program, x, y = _compile(client, DONATING), _put(client), _put(client)
    x._spec.handle.library.call("Buffer_Delete", buffer=x._pointer)
    with pytest.raises(DeletedBuffer, match=r"argument 0 of 'main'.* deleted or donated meanwhile"):
        program.execute([(x,), (y,)])


def test_an_exported_executable_states_its_analyses(client: Client) -> None:
    executable = _compile(client).executable
    assert executable.cost_analysis()["flops"] == 3
    assert executable.memory_analysis().argument_size_in_bytes == 24
    assert executable.fingerprint() == _compile(client).executable.fingerprint()
    assert executable.output_memory_kinds[0] == "device"
    assert executable.optimized_program().code


SPLIT = b"""module @split {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%a: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = stablehlo.add %a, %a : tensor<8x2xf32>
    return %0 : tensor<8x2xf32>
  }
}"""


def test_a_library_that_is_exported_again_states_the_same_shardings(tmp_path: Path) -> None:
    direct, once = _direct(tmp_path), _library(tmp_path)
    twice = LibraryPlugin("twice", c_api=export_capsule(lambda **_: once)).create_client({})
    options: dict[str, Any] = {
        "num_partitions": 4, "use_spmd_partitioning": True, "use_shardy_partitioner": True,
    }  # fmt: skip
    clients = (direct, once, twice)
    stated = [_compile(client, SPLIT, **options).executable for client in clients]
    assert len({(*e.parameter_shardings(), *e.output_shardings()) for e in stated}) == 1
    assert stated[0].parameter_shardings() != stated[0].output_shardings()
    for client in clients[1:]:
        with pytest.raises(Unimplemented, match="output_shardings is not implemented"):
            _compile(client).executable.output_shardings()


def test_shardings_that_a_backend_does_not_state_are_those_of_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {
        "num_partitions": 4, "use_spmd_partitioning": True, "use_shardy_partitioner": True,
    }  # fmt: skip
    direct = _compile(_direct(tmp_path), SPLIT, **options).executable
    stated = direct.parameter_shardings(), direct.output_shardings()
    for name in ("parameter_shardings", "output_shardings"):
        monkeypatch.setattr(type(direct), name, lambda self, name=name: self._unimplemented(name))
    with pytest.raises(Unimplemented):
        direct.output_shardings()
    exported = _compile(_capsule(tmp_path), SPLIT, **options).executable
    found = exported.parameter_shardings(), exported.output_shardings()
    tilings = [[read_op_sharding(s, 2, 4) for [s] in both] for both in (found, stated)]
    assert tilings[0] == tilings[1]


def test_a_client_s_topology_names_its_kinds_of_memory(tmp_path: Path) -> None:
    client: Any = _capsule(tmp_path)
    name = "TopologyDescription_GetMemorySpaceKindIds"
    args = client.library.call(name, topology=client.topology().pointer)
    found = ffi.unpack(args.memory_space_kind_ids, args.num_memory_space_kind_ids)
    memories = client.devices()[0].memories()
    asked = [client.library.call("Memory_Kind_Id", memory=m.pointer).kind_id for m in memories]
    assert sorted(asked) == found == [0, 1, 2]


def test_a_view_of_the_host_s_memory(tmp_path: Path) -> None:
    client: Any = _capsule(tmp_path)
    memory = np.zeros(128, np.uint8)
    begin = -memory.ctypes.data % 64
    source = memory[begin : begin + 64].view(np.float32)
    released: list[int] = []

    @ffi.callback("void(void*, void*)")  # type: ignore[untyped-decorator]
    def release(pointer: Any, argument: Any) -> None:
        released.append(int(ffi.cast("uintptr_t", pointer)))

    inputs = {
        "client": client.handle().pointer, "dims": ffi.new("int64_t[]", [16]), "num_dims": 1,
        "device_buffer_ptr": ffi.from_buffer(source), "device": client.devices()[0].pointer,
        "on_delete_callback": release,
    }  # fmt: skip
    args = client.library.call("Client_CreateViewOfDeviceBuffer", element_type=11, **inputs)
    source[:] = range(16)
    pointer = client.library.call("Buffer_UnsafePointer", buffer=args.buffer).buffer_pointer
    assert pointer == source.ctypes.data
    assert not released
    client.library.call("Buffer_Destroy", buffer=args.buffer)
    for _ in range(3):  # jaxlib releases Python's objects at a later call
        _put(client)
        gc.collect()
    assert released == [source.ctypes.data]
    with pytest.raises(Unimplemented, match="element type 63"):
        client.library.call("Client_CreateViewOfDeviceBuffer", element_type=63, **inputs)
    assert len(released) == 1


@runs_apart("sdk")
@needs_jax
def test_under_jax_as_a_capsule() -> None:
    functions = ("devices", "dtypes", "jit_and_get", "beside_cpu", "pending_exception",
                 "transforms", "several_devices", "no_results", "effects_without_results",
                 "pure_callbacks", "narrow_types", "ahead_of_time", "memories", "caches",
                 "eight_threads", "two_threads_on_one_array", "exit_with_live_arrays")  # fmt: skip
    command = [sys.executable, "-m", "support.under_jax", "cpu", *functions]
    environment = {**os.environ, "PYTHONPATH": children.path_with(TESTS), "XLA_FLAGS": ""}
    done = children.run(command, timeout=280, env=environment)
    assert done.stdout.split() == [w for name in functions for w in ("ok", name)], done.stderr
    assert done.returncode == 0, done.stderr


PROGRAM = """
import jax, jax.numpy as jnp
print(*jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)))(jnp.arange(4.0)).tolist())
x = jnp.ones(3)
assert jax.jit(lambda x: x + 1, donate_argnums=0)(x)[0] == 2 and x.is_deleted()
"""


@needs_jax
def test_callbacks_of_jax_s_own_cpu_stay_its_own(client: Client) -> None:
    """An exported plugin may serve JAX's callbacks, but leaves JAX's own cpu backend alone."""
    import jax

    double = jax.jit(lambda x: jax.pure_callback(lambda v: 2 * np.asarray(v), x, x))
    with jax.default_device(jax.devices("cpu")[0]):
        np.testing.assert_array_equal(double(ONE), 2 * ONE)


@needs_jax
def test_under_jax_as_a_library_that_the_environment_names(tmp_path: Path) -> None:
    path = export_library("cpu", tmp_path / "libpjrt_cpu.so")
    variables = {"PJRT_NAMES_AND_LIBRARY_PATHS": f"np:{path}", "JAX_PLATFORMS": "np"}
    environment = {**os.environ, **variables, "XLA_FLAGS": ""}
    done = children.run([sys.executable, "-c", PROGRAM], timeout=250, env=environment)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(
        [float(w) for w in done.stdout.split()], np.sin(2 * np.arange(4.0)), rtol=1e-5
    )


@needs(importlib.util.find_spec("pypjrt"), "pypjrt")
def test_a_peer_finds_no_fault_with_the_library(tmp_path: Path) -> None:
    path = export_library("cpu", tmp_path / "libpjrt_cpu.so")
    done = children.run([sys.executable, "-m", "pypjrt.conform", path], timeout=250)
    assert done.returncode == 0, done.stdout
    assert done.stdout.strip().endswith("0 FAIL"), done.stdout
