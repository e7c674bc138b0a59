"""Extensions and asynchronous transfers of a real library, and its missing features."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from plugrt.capi.buffers.raw_buffer import RawBuffer
from plugrt.capi.client import async_transfers
from plugrt.capi.client.async_transfers import AsyncTransfer
from plugrt.capi.client.phase_compile import PhaseCompiler
from plugrt.capi.extensions import ffi, layouts, shardings, stream
from plugrt.capi.extensions.profiler import Profiler
from plugrt.errors import Internal, InvalidArgument, NotFound, OutOfRange, Unimplemented
from plugrt.interface import Client, CompileOptions, Device, TensorType
from support.xla_cpu import add, program

F4 = np.dtype(np.float32)
_numbers = itertools.count()


def custom_call(name: str, config: str = "") -> Any:
    call = f"stablehlo.custom_call @{name}(%a) {{api_version = 4 : i32{config}}}"
    body = f"%0 = {call} : (tensor<2x3xf32>) -> tensor<2x3xf32> return %0 : tensor<2x3xf32>"
    return program(body, "%a: tensor<2x3xf32>", "tensor<2x3xf32>")


class TestFfi:
    """Custom calls with handlers in Python."""

    def run(self, client: Client, handler: ffi.Handler, config: str = "") -> Any:
        name = f"plugrt_test_{next(_numbers)}"
        ffi.register_handler(client.library, name, handler, "Host")
        loaded = client.compile(custom_call(name, config), CompileOptions())
        array = np.arange(6, dtype=F4).reshape(2, 3)
        buffer = client.buffer_from_host(array, client.devices()[0])
        return loaded.execute([(buffer,)])[0][0].to_host()

    def test_arguments_and_results(self, client: Client) -> None:
        def double(arguments: Any, results: Any, attributes: Any) -> None:
            assert not arguments[0].flags.writeable
            assert dict(attributes) == {}
            results[0][...] = arguments[0] * 2

        assert self.run(client, double).tolist() == [[0, 2, 4], [6, 8, 10]]

    def test_attributes(self, client: Client) -> None:
        seen: dict[str, Any] = {}

        def remember(arguments: Any, results: Any, attributes: Any) -> None:
            seen.update(attributes)
            results[0][...] = 0

        config = ', backend_config = {n = 3 : i32, x = 0.5 : f64, s = "text", f = true, '
        config += "list = array<i64: 1, 2>, more = {deep = 7 : i64}}"
        self.run(client, remember, config)
        assert seen.pop("list").tolist() == [1, 2]
        assert seen == {"n": 3, "x": 0.5, "s": "text", "f": True, "more": {"deep": 7}}

    def test_exception_becomes_the_error_of_the_launch(self, client: Client) -> None:
        def broken(arguments: Any, results: Any, attributes: Any) -> None:
            raise ZeroDivisionError("by zero")

        with pytest.raises(Internal, match="raised ZeroDivisionError: by zero"):
            self.run(client, broken)

    def test_pjrt_error_keeps_its_code(self, client: Client) -> None:
        def refuse(arguments: Any, results: Any, attributes: Any) -> None:
            raise NotFound("no such table")

        with pytest.raises(NotFound, match="no such table"):
            self.run(client, refuse)

    def test_unknown_target(self, client: Client) -> None:
        with pytest.raises(NotFound, match="No FFI handler registered for nobody"):
            client.compile(custom_call("nobody"), CompileOptions())


class TestAsyncTransfer:
    """Buffers filled piece by piece."""

    def types(self) -> list[TensorType]:
        return [TensorType((4,), F4), TensorType((2, 2), np.dtype(np.int32))]

    def test_pieces(self, client: Client, device: Device) -> None:
        transfer = AsyncTransfer(client, self.types(), device.default_memory())
        assert len(transfer) == 2
        assert transfer.device is device
        assert [transfer.buffer_size(i) for i in (0, 1)] == [16, 16]
        first, second = transfer.retrieve(0), transfer.retrieve(1)
        event = first.ready_event()
        transfer.send(0, np.array([1, 2], F4), 0, last=False)
        assert not event.is_ready()
        transfer.send(0, np.array([3, 4], F4), 8)
        transfer.send(1, np.arange(4, dtype=np.int32))
        assert first.to_host().tolist() == [1, 2, 3, 4]
        assert second.to_host().tolist() == [[0, 1], [2, 3]]

    def test_failure(self, client: Client, device: Device) -> None:
        transfer = AsyncTransfer(client, self.types(), device.default_memory())
        buffer = transfer.retrieve(0)
        transfer.fail(0, Internal("the file ended"))
        with pytest.raises(Internal, match="the file ended"):
            buffer.to_host()
        loaded = client.compile(add(), CompileOptions())
        ((result,),) = loaded.execute([(buffer,), (buffer,)])
        with pytest.raises(Internal, match="the file ended"):
            result.block_until_ready()

    def test_refusals(self, client: Client, own_client: Client, device: Device) -> None:
        transfer = AsyncTransfer(client, self.types(), device.default_memory())
        with pytest.raises(OutOfRange, match="no buffer 2"):
            transfer.retrieve(2)
        with pytest.raises(OutOfRange, match=r"20 bytes .* do not fit buffer 0.* 16 bytes"):
            transfer.send(0, np.zeros(5, F4))
        with pytest.raises(OutOfRange):
            transfer.send(0, b"abcd", -4)
        with pytest.raises(InvalidArgument, match="another client"):
            AsyncTransfer(client, self.types(), own_client.devices()[0].default_memory())
        with pytest.raises(Unimplemented, match="TransferLiteral"):
            transfer.send_literal(0, np.zeros(4, F4))

    def test_uninitialized(self, client: Client, device: Device) -> None:
        kind = TensorType((2, 5), F4)
        buffer = async_transfers.create_uninitialized(client, kind, device.default_memory())
        assert buffer.to_host().shape == (2, 5)

    def test_error_buffer_is_too_new(self, client: Client, device: Device) -> None:
        with pytest.raises(Unimplemented, match="PJRT_Client_CreateErrorBuffer"):
            async_transfers.create_error_buffer(
                client, TensorType((), F4), device.default_memory(), Internal("x")
            )


def test_layouts(client: Client, device: Device) -> None:
    buffer = client.buffer_from_host(np.zeros((2, 3), F4), device)
    assert buffer.layout.text == "{1,0}"
    assert client.default_layout(TensorType((2, 3, 4), F4)).text == "{2,1,0}"
    executable = client.compile(add("tensor<2x3xf32>"), CompileOptions()).executable
    assert [layout.text for layout in executable.output_layouts()] == ["{1,0}"]
    # The struct is a slot shorter than the newest: it is not read, and the program has the data
    # instead.
    with pytest.raises(Unimplemented, match="GetParameterLayouts is not implemented"):
        layouts.parameter_layouts(executable.library, executable.pointer)
    assert [layout.text for layout in executable.parameter_layouts()] == ["{1,0}", "{1,0}"]


def test_missing_extensions_are_unimplemented(client: Client, device: Device) -> None:
    executable = client.compile(add(), CompileOptions()).executable
    buffer = client.buffer_from_host(np.zeros(2, F4), device)
    for name, use in {
        "Shardings": lambda: shardings.output_shardings(executable.library, executable.pointer),
        "Stream": lambda: stream.wait_until_ready_on_stream(client.library, buffer._live(), 3),
        "RawBuffer": lambda: RawBuffer(buffer),
        "Profiler": lambda: Profiler(client.library),
        "PhaseCompile": lambda: PhaseCompiler(client.library),
    }.items():
        with pytest.raises(Unimplemented, match=name):
            use()
