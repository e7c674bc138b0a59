"""The worked example of an asynchronous backend under plugrt, directly and through the C API."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from plugrt.errors import DeletedBuffer, Internal
from plugrt.interface import Client, CompileOptions, Program
from plugrt.plugins import LibraryPlugin
from plugrt_sdk import BackendClient
from plugrt_sdk.export import export_capsule
from support.markdown import load_script

ADD = b"""func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %b : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
DONATING = ADD.replace(b"%a: tensor<3xf32>", b"%a: tensor<3xf32> {tf.aliasing_output = 0 : i32}")
ONE = np.float32([1, 2, 3])


class Running:
    """A client of the example, and its backend."""

    def __init__(self, exported: bool) -> None:
        self.backend = load_script("examples/asynchronous_backend.py").Asynchronous(2)
        inner: Client = BackendClient(self.backend)
        self.client = inner
        if exported:
            capsule = export_capsule(lambda: inner)
            self.client = LibraryPlugin("example", c_api=capsule).create_client({})

    def put(self) -> Any:
        return self.client.buffer_from_host(ONE, self.client.devices()[0])

    def launch(self, code: bytes, *arguments: Any) -> Any:
        program = self.client.compile(Program(code), CompileOptions())
        return program.execute([(x,) for x in arguments])[0][0]

    def block(self) -> threading.Event:
        """Keeps the first device busy until the event is set."""
        event = threading.Event()
        self.backend.workers[0].submit(lambda: [event.wait()])
        return event


@pytest.fixture(params=["directly", "exported"])
def running(request: pytest.FixtureRequest) -> Iterator[Running]:
    made = Running(request.param == "exported")
    yield made
    made.client.close()


def test_it_declares_what_it_does(running: Running) -> None:
    can = BackendClient(running.backend).capabilities
    assert can.asynchronous_dispatch
    assert can.donation
    assert can.memory_kinds
    assert can.device_to_device_copy
    assert not can.multiple_devices


def test_launches_return_while_the_device_is_busy(running: Running) -> None:
    x = running.put()
    go = running.block()
    y = running.launch(ADD, x, x)
    event = y.ready_event()
    assert not event.is_ready()
    go.set()
    np.testing.assert_array_equal(y.to_host(), 2 * ONE)
    assert event.is_ready()


def test_a_donated_array_is_gone_before_it_is_consumed(running: Running) -> None:
    x, y = running.put(), running.put()
    go = running.block()
    result = running.launch(DONATING, x, y)
    assert x.is_deleted()
    with pytest.raises(DeletedBuffer):
        x.to_host()
    go.set()
    np.testing.assert_array_equal(result.to_host(), 2 * ONE)
    np.testing.assert_array_equal(y.to_host(), ONE)


def test_a_failure_is_everything_that_is_computed_with_it(running: Running) -> None:
    x = running.put()
    submit = running.backend.workers[0].submit
    running.backend.workers[0].submit = lambda work, count=1: submit(lambda: [1 // 0], count)
    failed = running.launch(ADD, x, x)
    running.backend.workers[0].submit = submit
    after = running.launch(ADD, failed, x)
    for ask in (failed.block_until_ready, failed.to_host, after.to_host):
        with pytest.raises(Internal, match="ZeroDivisionError"):
            ask()
    np.testing.assert_array_equal(running.launch(ADD, x, x).to_host(), 2 * ONE)


def test_the_second_memory(running: Running) -> None:
    near, far = running.client.devices()
    x = running.client.buffer_from_host(ONE, near, near.memory("pinned_host"))
    y = x.copy_to_memory(far.memory("pinned_host"))
    z = y.copy_to_device(near)
    assert (x.memory.kind, y.memory.kind, z.memory.kind) == ("pinned_host", "pinned_host", "device")
    np.testing.assert_array_equal(z.to_host(), ONE)


def test_arrays_that_are_dropped_while_the_device_is_busy(running: Running) -> None:
    x = running.put()
    go = running.block()
    y = running.launch(ADD, x, x)
    del x
    gc.collect()
    go.set()
    np.testing.assert_array_equal(y.to_host(), 2 * ONE)
