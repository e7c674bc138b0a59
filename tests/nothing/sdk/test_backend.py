"""A backend of four methods is a whole client: jitted functions, ownership, refusals."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import FailedPrecondition, InvalidArgument
from plugrt.interface import Client, CompileOptions, Program
from plugrt_reference.backend import Reference
from plugrt_sdk import Backend, BackendClient, BackendPlugin
from support.distributions import run_python
from support.late_client import Adder
from support.native_core import python_calls

ADD = b"""func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %b : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
ONE = np.float32([1, 2, 3])


@pytest.fixture
def client() -> BackendClient:
    return BackendClient(Reference(devices=2))


def _add(client: Client) -> Any:
    return client.compile(Program(ADD), CompileOptions())


def test_every_handle_is_given_back_once(client: BackendClient) -> None:
    reference = client.backend
    assert isinstance(reference, Reference)
    x = client.buffer_from_host(ONE, client.devices()[0])
    results = _add(client).execute([(x,), (x,)])
    assert reference.live == 2
    x.delete()
    x.delete()
    assert reference.live == 1
    del results
    gc.collect()
    assert reference.live == 0


ENDING = """
import atexit
import numpy as np
from plugrt_sdk import BackendClient
from support.late_client import Adder

class Told(Adder):
    def delete(self, handle):
        print("deleted")

client = BackendClient(Told())
x = client.buffer_from_host(np.ones(3, np.float32), client.devices()[0])
if EARLY:
    atexit.register(x.delete)
"""


@pytest.mark.parametrize(("early", "told"), [("True", "deleted\n"), ("False", "")])
def test_a_buffer_is_left_to_the_process_that_ends(early: str, told: str) -> None:
    """At exit, modules may have lost their names: earlier, freeing a buffer printed a traceback."""
    done = run_python(ENDING.replace("EARLY", early))
    assert (done.stdout, done.stderr, done.returncode) == (told, "", 0)


def test_a_client_closes_its_backend_when_the_last_buffer_is_gone(client: BackendClient) -> None:
    reference = client.backend
    assert isinstance(reference, Reference)
    x = client.buffer_from_host(ONE, client.devices()[0])
    client.close()
    client.close()
    np.testing.assert_array_equal(x.to_host(), ONE)
    assert not reference.closed
    x.delete()
    assert reference.closed
    with pytest.raises(FailedPrecondition, match="closed"):
        client.buffer_from_host(ONE, client.devices()[0])


class _Plain(Adder):
    """A backend that overrides none of the methods that the deletion of a buffer calls."""

    delete, close = Backend.delete, Backend.close


def test_close_alone_waits_for_the_last_buffer() -> None:
    closed = []

    class Closing(_Plain):
        def close(self) -> None:
            closed.append(True)

    client = BackendClient(Closing())
    x = client.buffer_from_host(ONE, client.devices()[0])
    client.close()
    assert not closed
    del x
    assert closed == [True]


def test_a_buffer_of_a_backend_that_is_told_of_no_end_ends_without_a_call() -> None:
    """Calling the methods cost a fourth of a small launch under JAX."""
    client = BackendClient(_Plain())
    loaded, x = _add(client), client.buffer_from_host(ONE, client.devices()[0])
    loaded.execute([(x,), (x,)])  # the first launch compares types
    with python_calls() as seen:
        results = loaded.execute([(x,), (x,)])
        made = len(seen)
        del results
    assert (made <= 8, seen[made:]) == (True, []), seen


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (lambda x, far: [(x,)], "takes 2 arguments; 1"),
        (lambda x, far: [(x,), (x, x)], "argument 1 .* 2 buffers for 1 devices"),
        (lambda x, far: [(x,), (far,)], "argument 1 .* must be on reference:0"),
    ],
)
def test_wrong_arguments_are_refused(client: BackendClient, arguments: Any, says: str) -> None:
    near, far = (client.buffer_from_host(ONE, d) for d in client.devices())
    with pytest.raises(InvalidArgument, match=says):
        _add(client).execute(arguments(near, far))


def test_a_backend_without_a_platform_is_refused() -> None:
    class Nameless(Reference):
        platform = ""

    with pytest.raises(InvalidArgument, match="Nameless must set"):
        BackendClient(Nameless())


def test_backend_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Backend()  # type: ignore[abstract]


def test_a_plugin_of_it_serves_jit() -> None:
    made = []

    def factory(**options: Any) -> Reference:
        made.append(Reference(**options))
        return made[-1]

    registry = plugrt.plugins.Backends(path=[])
    registry.register(BackendPlugin("reference", factory))
    assert not made, "a backend is made when it is selected, not before"
    client = plugrt.get_backend("reference", registry)
    x = plugrt.device_put(ONE, client.devices()[0])
    result = plugrt.jit(lambda v: (v * 2 + 1).sum())(x)
    assert float(result) == 15
    assert result.device is client.devices()[0]
    assert len(made) == 1
