"""Compiling and launching on one device."""

from __future__ import annotations

import io
import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt.errors import (
    DeletedBuffer,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PjrtError,
    ResourceExhausted,
    Unimplemented,
    Unknown,
)
from plugrt.interface import Client, CompileOptions, ExecuteOptions, Program, TensorType
from plugrt_cpu import plugin
from plugrt_cpu.shards import CpuShards
from support.cpu_programs import DTYPE_NAMES, add, dtype_of, function, identity, matmul, tensor

Launch = Callable[..., list[np.ndarray[Any, Any]]]
F4 = np.dtype("float32")


@pytest.fixture
def put(client: Client) -> Callable[..., Any]:
    def on_first_device(values: Any, dtype: Any = "float32") -> Any:
        return [client.buffer_from_host(np.asarray(values, dtype), client.devices()[0])]

    return on_first_device


@pytest.mark.parametrize("name", DTYPE_NAMES)
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_every_dtype_passes_through(launch: Launch, name: str, shape: tuple[int, ...]) -> None:
    source = np.ones(shape, dtype_of(name))
    (result,) = launch(identity(shape, name), source)
    assert (result.dtype, result.shape) == (source.dtype, shape)
    assert result.tobytes() == source.tobytes()


@pytest.mark.parametrize("name", ["int4", "int8", "uint64", "bfloat16", "float64", "complex64"])
def test_add(launch: Launch, name: str) -> None:
    source = np.array([0, 1, 2, 3]).astype(dtype_of(name))
    (result,) = launch(add((4,), name), source, source)
    np.testing.assert_array_equal(result, source + source)


def test_negative_sub_byte_results(launch: Launch) -> None:
    source = np.array([-2, -1, 0, 1]).astype(dtype_of("int4"))
    (result,) = launch(add((4,), "int4"), source, source)
    assert result.astype(int).tolist() == [-4, -2, 0, 2]


def test_executable_states_itself(client: Client) -> None:
    loaded = client.compile(add(), CompileOptions())
    executable = loaded.executable
    assert executable.name == "test"
    assert (executable.num_replicas, executable.num_partitions) == (1, 1)
    assert list(executable.output_types) == [TensorType((4,), F4)]
    assert list(executable.output_memory_kinds) == ["device"]
    assert list(loaded.addressable_devices) == [client.devices()[0]]
    assert loaded.client is client
    assert executable.cost_analysis()["flops"] == 4.0
    assert executable.cost_analysis()["bytes accessed"] == 48.0
    memory = executable.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (32, 16)
    assert "HloModule" in executable.as_text()
    assert "add" in executable.as_text()
    assert executable.generated_code_size_in_bytes() >= 0


def test_fingerprint(client: Client) -> None:
    one, same, other = (
        client.compile(p, CompileOptions()).executable.fingerprint()
        for p in (add(), add(), add((5,)))
    )
    assert one == same != other
    assert isinstance(one, bytes)


def test_optimized_program_compiles_again(client: Client, launch: Launch) -> None:
    program = client.compile(add((4,), "int32"), CompileOptions()).executable.optimized_program()
    assert program.format == "hlo"
    (result,) = launch(program, np.arange(4, dtype="i4"), np.arange(4, dtype="i4"))
    assert result.tolist() == [0, 2, 4, 6]


def test_on_another_device(client: Client) -> None:
    from plugrt.interface import DeviceAssignment

    options = CompileOptions(device_assignment=DeviceAssignment(((2,),)))
    loaded = client.compile(add(), options)
    device = client.devices()[2]
    assert list(loaded.addressable_devices) == [device]
    ones = client.buffer_from_host(np.ones(4, "f4"), device)
    (result,) = loaded.execute([[ones], [ones]])
    assert result[0].device is device
    with pytest.raises(InvalidArgument, match=r"cpu:0|CPU_0"):
        loaded.execute([[client.buffer_from_host(np.ones(4, "f4"), client.devices()[0])]] * 2)


def test_results_come_back_as_arguments(client: Client, put: Any) -> None:
    loaded = client.compile(add(), CompileOptions())
    total = loaded.execute([put([1, 2, 3, 4]), put([0, 0, 0, 0])])[0]
    for _ in range(3):
        assert isinstance(total, CpuShards)
        total = loaded.execute([total, (total[0],)])[0]
    assert total[0].to_host().tolist() == [8, 16, 24, 32]
    assert total[0] is total[0]
    assert (len(total), [*total]) == (1, [total[0]])


# --- asynchrony ------------------------------------------------------------------------------


def test_dispatch_is_asynchronous(client: Client, put: Any) -> None:
    loaded = client.compile(matmul(600, 40), CompileOptions())
    argument = put(np.eye(600))
    for _ in range(5):  # a busy machine may let this thread go on after the launch has ended
        result = loaded.execute([argument])[0][0]
        event = result.ready_event()
        if not (was_ready := event.is_ready()):
            break
    assert not was_ready
    called: list[Any] = []
    done = threading.Event()
    event.on_ready(lambda error: (called.append(error), done.set()))
    event.wait()
    assert event.is_ready()
    assert done.wait(60)
    assert called == [None]
    assert np.trace(result.to_host()) == 600
    event.on_ready(called.append)
    assert called == [None, None]


def test_synchronous_client() -> None:
    client = plugin.create_client({"asynchronous": False})
    assert not client.capabilities.asynchronous_dispatch
    loaded = client.compile(matmul(300, 10), CompileOptions())
    eye = client.buffer_from_host(np.eye(300, dtype="f4"), client.devices()[0])
    result = loaded.execute([[eye]])[0][0]
    assert result.ready_event().is_ready()
    client.close()


def test_delete_with_work_pending(client: Client, put: Any) -> None:
    loaded = client.compile(matmul(400, 20), CompileOptions())
    argument = put(np.eye(400))
    result = loaded.execute([argument])[0][0]
    argument[0].delete()
    assert np.trace(result.to_host()) == 400


def failed_buffer(client: Client, text: str) -> Any:
    """A buffer whose making has failed, as jaxlib makes it for tests of its own."""
    from plugrt_cpu.adapter import _jax
    from plugrt_cpu.buffer import CpuBuffer
    from plugrt_cpu.types import array_type

    device = client.devices()[0]
    type_, _ = array_type((4,), F4)

    class Described:
        shape, dtype, weak_type = (4,), F4, False
        sharding = device.place.sharding  # type: ignore[attr-defined]

    raw = _jax._make_error_array(client._raw, Described(), text)  # type: ignore[attr-defined]
    return CpuBuffer(raw, type_, device.place)  # type: ignore[attr-defined]


def test_errors_surface_at_the_event(client: Client) -> None:
    bad = failed_buffer(client, "boom")
    loaded = client.compile(add(), CompileOptions())
    result = loaded.execute([[bad], [bad]])[0][0]
    for buffer in (bad, result):
        errors: queue.Queue[PjrtError | None] = queue.Queue()
        buffer.ready_event().on_ready(errors.put)
        for use in (buffer.to_host, buffer.block_until_ready, buffer.ready_event().wait):
            with pytest.raises(PjrtError, match="boom"):
                use()
        buffer.ready_event().on_ready(errors.put)
        assert [type(errors.get(timeout=60)).__name__ for _ in range(2)] == ["Internal"] * 2
        assert errors.empty()
        buffer.delete()
        assert buffer.is_deleted()


def test_out_of_memory(client: Client) -> None:
    huge = tensor((1 << 42,), "float32")
    program = function(
        ["tensor<f32>"],
        [huge],
        f"%0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> {huge}\n"
        f"return %0 : {huge}",
    )
    loaded = client.compile(program, CompileOptions())
    one = client.buffer_from_host(np.float32(1).reshape(()), client.devices()[0])
    with pytest.raises(ResourceExhausted):
        loaded.execute([[one]])[0][0].block_until_ready()


# --- donation --------------------------------------------------------------------------------


def test_donation(client: Client, put: Any) -> None:
    loaded = client.compile(add(donate=True), CompileOptions())
    first, second = put([1, 2, 3, 4]), put([1, 1, 1, 1])
    pointer = first[0].unsafe_pointer()
    result = loaded.execute([first, second])[0][0]
    assert first[0].is_deleted()
    assert not second[0].is_deleted()
    assert result.unsafe_pointer() == pointer
    assert result.to_host().tolist() == [2, 3, 4, 5]
    with pytest.raises(DeletedBuffer):
        first[0].to_host()
    with pytest.raises(DeletedBuffer):
        loaded.execute([first, second])


def test_donated_shards_are_deleted_too(client: Client, put: Any) -> None:
    loaded = client.compile(add(donate=True), CompileOptions())
    shards = loaded.execute([put([1] * 4), put([1] * 4)])[0]
    loaded.execute([shards, put([1] * 4)])
    assert shards[0].is_deleted()


@pytest.mark.parametrize("launch", ["execute", "launcher"])
@pytest.mark.parametrize("how", ["to_host", "to_dlpack"])
def test_donation_of_what_the_host_looks_at(
    client: Client, put: Any, how: str, launch: str
) -> None:
    loaded = client.compile(add(donate=True), CompileOptions())
    first = client.shards(put([1, 2, 3, 4]))
    host = first[0].to_host()
    view = getattr(first[0], how)()
    result = getattr(loaded, launch)([first, client.shards(put([1] * 4))])[0]
    if launch == "launcher":
        device = client.devices()[0]
        result = client.held_form(TensorType((4,), F4), device.default_memory()).open(result)
    assert first[0].is_deleted()
    assert host.tolist() == [1, 2, 3, 4]
    assert result[0].to_host().tolist() == [2, 3, 4, 5]
    del view


def test_zero_copy_source_is_never_written(client: Client, put: Any) -> None:
    from plugrt.interface import HostBufferSemantics

    loaded = client.compile(add(donate=True), CompileOptions())
    memory = np.ones(64 + 16, np.uint8)
    source = memory[-memory.ctypes.data % 64 :][:16].view("f4")
    source[:] = 1
    for semantics in (
        HostBufferSemantics.IMMUTABLE_ZERO_COPY,
        HostBufferSemantics.MUTABLE_ZERO_COPY,
    ):
        buffer = client.buffer_from_host(source, client.devices()[0], None, semantics)
        result = loaded.execute([[buffer], put([1] * 4)])[0][0]
        assert result.to_host().tolist() == [2] * 4
        assert buffer.is_deleted()
        assert source.tolist() == [1] * 4


def test_non_donatable_arguments_survive(client: Client, put: Any) -> None:
    loaded = client.compile(add(donate=True), CompileOptions())
    first, second = put([1, 2, 3, 4]), put([1] * 4)
    options = ExecuteOptions(launch_id=7, non_donatable_input_indices=(0,))
    result = loaded.execute([first, second], options)[0][0]
    assert result.to_host().tolist() == [2, 3, 4, 5]
    assert first[0].to_host().tolist() == [1, 2, 3, 4]
    loaded.execute([first, second], ExecuteOptions())
    assert first[0].is_deleted()


def test_donating_one_buffer_twice(client: Client, put: Any) -> None:
    loaded = client.compile(add(donate=True), CompileOptions())
    first = put([1] * 4)
    with pytest.raises((InvalidArgument, DeletedBuffer), match="donated"):
        loaded.execute([first, first])


# --- bad arguments ---------------------------------------------------------------------------


def test_wrong_arguments(client: Client, put: Any) -> None:
    loaded = client.compile(add(), CompileOptions())
    good = put([1] * 4)
    for arguments, match in (
        ([], "takes 2 arguments; 0 were given"),
        ([good], "takes 2 arguments; 1 were"),
        ([good] * 3, "takes 2 arguments; 3 were"),
        ([good, put([1] * 5)], r"argument 1 .* must be float32\[4\]; float32\[5\] was given"),
        ([put([1] * 4, "int32"), good], r"argument 0 .*; int32\[4\] was given"),
        ([put([[1, 1], [1, 1]]), good], r"argument 0 .*; float32\[2,2\] was given"),
        ([good, good * 2], "2 buffers for the 1 devices"),
        ([good, []], "0 buffers for the 1 devices"),
        ([good, ["x"]], "another backend"),
    ):
        with pytest.raises(InvalidArgument, match=match):
            loaded.execute(arguments)
    deleted = put([1] * 4)
    deleted[0].delete()
    with pytest.raises(DeletedBuffer, match=r"arguments \[1\]"):
        loaded.execute([good, deleted])


def test_buffer_of_another_client(client: Client, put: Any) -> None:
    other = plugin.create_client({})
    loaded = client.compile(add(), CompileOptions())
    foreign = [other.buffer_from_host(np.ones(4, "f4"), other.devices()[0])]
    with pytest.raises(InvalidArgument, match="device"):
        loaded.execute([foreign, put([1] * 4)])
    other.close()


def test_deleted_executable(client: Client, put: Any) -> None:
    loaded = client.compile(matmul(400, 10), CompileOptions())
    argument = put(np.eye(400))
    result = loaded.execute([argument])[0][0]
    assert not loaded.is_deleted()
    loaded.delete()
    loaded.delete()
    assert loaded.is_deleted()
    assert np.trace(result.to_host()) == 400
    with pytest.raises(FailedPrecondition, match="deleted"):
        loaded.execute([argument])


# --- bad programs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "error", "match"),
    [
        (b"", InvalidArgument, "main"),
        (b"module {}", InvalidArgument, "main"),
        (b"\x01\x02garbage", Unknown, "1:1"),
        (b"this is no MLIR", Unknown, "1:1"),
        (b"ML\xefR", Unknown, "bytecode"),
        (b"ML\xefR\x06garbage\x00" * 9, Unknown, "bytecode"),
        (
            b"module { func.func @main(%a: tensor<4xf32>) -> tensor<5xf32> {\n"
            b"return %a : tensor<4xf32> } }",
            Unknown,
            "2:1",
        ),
        (b"module { func.func @main() {\n %0 = foo.bar\n return } }", Unknown, "foo"),
        (
            b"module { func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {\n"
            b"return %a : tensor<?xf32> } }",
            InvalidArgument,
            "dynamism",
        ),
        (
            b"module { func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
            b"%0 = stablehlo.custom_call @nosuch(%a) : (tensor<f32>) -> tensor<f32>\n"
            b"return %0 : tensor<f32> } }",
            (NotFound, Unimplemented),
            "nosuch",
        ),
    ],
    ids=["empty", "no main", "garbage", "prose", "cut bytecode", "bad bytecode", "verify",
         "unknown op", "dynamic", "custom call"],
)  # fmt: skip
def test_bad_programs(client: Client, code: bytes, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        client.compile(Program(code), CompileOptions())


@pytest.mark.parametrize("code", [b"", b"garbage", b"\x0a\x04name"])
def test_bad_hlo(client: Client, code: bytes) -> None:
    with pytest.raises(PjrtError):
        client.compile(Program(code, "hlo"), CompileOptions())


def test_unknown_format(client: Client) -> None:
    with pytest.raises(InvalidArgument, match="mlir"):
        client.compile(Program(b"", "onnx"), CompileOptions())


def test_bytecode_and_portable_artifact(launch: Launch, client: Client) -> None:
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    from plugrt.stablehlo.bindings import new_context

    stream = io.BytesIO()
    with new_context():
        ir.Module.parse(add().code.decode()).operation.write_bytecode(stream)
    bytecode = stream.getvalue()
    capabilities = client.capabilities
    assert capabilities.stablehlo_current_version is not None
    assert capabilities.stablehlo_minimum_version is not None
    versions = [capabilities.stablehlo_current_version, capabilities.stablehlo_minimum_version]
    artifacts = [
        stablehlo.serialize_portable_artifact_str(add().code.decode(), ".".join(map(str, v)))
        for v in versions
    ]
    ones = np.ones(4, "f4")
    for code in (bytecode, *artifacts):
        assert code[:4] == b"ML\xefR"
        assert launch(Program(code), ones, ones)[0].tolist() == [2] * 4


def test_token_results_are_refused(client: Client) -> None:
    program = Program(
        b"module { func.func @main() -> !stablehlo.token {\n"
        b"%0 = stablehlo.create_token : !stablehlo.token\nreturn %0 : !stablehlo.token } }"
    )
    with pytest.raises(Unimplemented, match="token"):
        client.compile(program, CompileOptions())


# --- threads ---------------------------------------------------------------------------------


def test_two_threads_launch_at_once(client: Client) -> None:
    loaded = client.compile(add(), CompileOptions())
    device = client.devices()[0]
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            start = np.full(4, seed, "f4")
            step = client.buffer_from_host(np.ones(4, "f4"), device)
            value: Any = [client.buffer_from_host(start, device)]
            for _ in range(300):
                value = loaded.execute([value, [step]])[0]
            assert value[0].to_host().tolist() == [seed + 300] * 4
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_launchers_take_results_and_shards_and_buffers_in_any_mix(client: Client, put: Any) -> None:
    loaded = client.compile(add(), CompileOptions())
    opener = client.held_form(TensorType((4,), F4), client.devices()[0].default_memory()).open
    forms = [
        loaded.launcher([client.shards(put([1] * 4)), client.shards(put([1] * 4))])[0],
        client.shards(put([2] * 4)),
        put([2] * 4),
        [*put([2] * 4)],
    ]
    for first in forms:
        for second in forms:
            [result] = loaded.launcher([first, second])
            assert opener(result)[0].to_host().tolist() == [4] * 4
    lost = opener(loaded.launcher(forms[:2])[0])
    lost[0].delete()
    for gone in (lost, lost.held):  # type: ignore[attr-defined]
        with pytest.raises(DeletedBuffer):
            loaded.launcher([gone, forms[0]])


def test_a_launcher_refuses_what_is_no_array(client: Client, put: Any) -> None:
    loaded = client.compile(add(), CompileOptions())
    for wrong in (None, 3):
        with pytest.raises((TypeError, InvalidArgument)):
            loaded.launcher([put([1] * 4), wrong])  # type: ignore[list-item]
