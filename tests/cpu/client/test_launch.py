"""Compiling and launching on one device."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt.errors import DeletedBuffer, InvalidArgument, PjrtError
from plugrt.interface import TOKEN_TYPE, Client, CompileOptions, Program, TensorType
from plugrt_cpu import plugin
from plugrt_sdk.testing.programs import TOKEN
from support.cpu_programs import add, matmul

F4 = np.dtype("float32")


@pytest.fixture
def put(client: Client) -> Callable[..., Any]:
    def on_first_device(values: Any, dtype: Any = "float32") -> Any:
        return [client.buffer_from_host(np.asarray(values, dtype), client.devices()[0])]

    return on_first_device


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


def test_dispatch_is_asynchronous(client: Client, put: Any) -> None:
    loaded = client.compile(matmul(600, 40), CompileOptions())
    argument = put(np.eye(600))
    for _ in range(5):  # a busy machine may run this thread only after the launch has ended
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


def failed_buffer(client: Client, text: str) -> Any:
    """Returns a buffer whose computation has failed, by a function of jaxlib's own tests."""
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


@pytest.mark.parametrize("launch", ["execute", "launcher"])
@pytest.mark.parametrize("how", ["to_host", "to_dlpack"])
def test_donation_of_a_buffer_with_a_host_view(
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


@pytest.mark.parametrize("count", [1, 2])
def test_a_launch_takes_the_token_of_the_one_before(client: Client, count: int) -> None:
    loaded = client.compile(Program(TOKEN.encode()), CompileOptions(num_replicas=count))
    devices = loaded.addressable_devices
    token = [client.buffer_from_host(np.zeros(0, np.bool_), device) for device in devices]
    x = [client.buffer_from_host(np.array([1, 2, 3], F4), device) for device in devices]
    with pytest.raises(InvalidArgument, match=r"argument 0 .* must be token"):
        loaded.execute([x, x])
    for _ in range(3):
        token, x = map(list, loaded.execute([token, x]))
    for copied in (token[-1], token[-1].copy_to_device(devices[0])):
        copied.block_until_ready()
        assert copied.dtype == TOKEN_TYPE.dtype
        with pytest.raises(InvalidArgument, match="a token orders effects"):
            copied.to_host()
    assert [each.to_host().tolist() for each in x] == [[1, 2, 3]] * count


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
