"""Python functions that programs on ``remote`` call: they run in the client's process."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt.errors import (
    ArgumentTypeError,
    Cancelled,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    PjrtError,
    ResourceExhausted,
    Unimplemented,
)
from plugrt.interface import Client, CompileOptions, HandlerStages, LoadedExecutable, Program
from plugrt_cpu.create_client import start
from plugrt_numpy import plugin as numpy_backend
from plugrt_remote.client import RemoteClient
from plugrt_remote.serving import turns
from plugrt_remote.serving.backend import Policy
from support.device_server import becomes_true, serving
from support.distributions import run_warm

CALLS = b"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @plugrt_host_callback(%x) {
    api_version = 4 : i32, backend_config = {index = 7 : ui64}
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
ADD = CALLS.replace(
    b"""custom_call @plugrt_host_callback(%x) {
    api_version = 4 : i32, backend_config = {index = 7 : ui64}
  } : (tensor<4xf32>) -> tensor<4xf32>""",
    b"add %x, %x : tensor<4xf32>",
)
X = np.array([1, 2, 3, 4], np.float32)


@pytest.fixture(scope="module", params=["cpu", "numpy"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    served = (
        start({"num_devices": 4}) if request.param == "cpu" else numpy_backend.create_client({})
    )
    with tempfile.TemporaryDirectory() as folder, serving(served, Path(folder)) as found:
        yield found


def compiled(client: Client, function: object) -> tuple[LoadedExecutable, Program]:
    """Returns a program that calls the function; the `Program` keeps the function alive."""
    program = Program(CALLS, callbacks={7: function})  # type: ignore[dict-item]
    return client.compile(program, CompileOptions()), program


def launch(loaded: LoadedExecutable) -> np.ndarray:
    [[y]] = loaded.execute([(loaded.client.buffer_from_host(X, loaded.addressable_devices[0]),)])
    return y.to_host()


USES = """
import numpy as np
import plugrt
from plugrt import debug, io_callback, jit, pure_callback
x = np.arange(4, dtype=np.float32)
seen = []

def note(v):
    seen.append(int(v))
    return np.int32(len(seen))

four = plugrt.ShapeDtypeStruct((4,), "float32")
double = jit(lambda v: pure_callback(lambda a: 2 * a, four, v) + 1)
print(np.asarray(double(double(x))).tolist())
print([float(double(x * i).sum()) for i in range(40)][-1])

@jit
def ordered(v):
    for _ in range(3):
        io_callback(note, plugrt.ShapeDtypeStruct((), "int32"), v, ordered=True)
        v = v + 1
    debug.print("v is {}", v)
    return v

for i in range(3):
    ordered(np.int32(10 * i))
plugrt.effects_barrier()
print(seen)
jit(lambda v: debug.callback(lambda a: print("no results:", a), v))(x)
plugrt.effects_barrier()

def fail(a):
    raise ValueError("it is wrong")

n = plugrt.device_count()
xs = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
of_parts = plugrt.pmap(lambda v: pure_callback(lambda a: a + 1, four, v))
print(np.array_equal(of_parts(xs), xs + 1))
for over, given in ((jit, x), (plugrt.pmap, xs)):
    try:
        over(lambda v: pure_callback(fail, four, v))(given).block_until_ready()
    except plugrt.errors.PjrtError as error:
        print(type(error).__name__, "ValueError: it is wrong" in str(error))
print(double(x))
"""
PRINTED = """\
[3.0, 7.0, 11.0, 15.0]
472.0
v is 3
v is 13
v is 23
[0, 1, 2, 10, 11, 12, 20, 21, 22]
no results: [0. 1. 2. 3.]
True
Internal True
Internal True
[1. 3. 5. 7.]
"""


def test_functions_run_in_the_client_in_their_order(address: str) -> None:
    shown = run_warm(USES, PLUGRT_REMOTE=address, JAX_PLATFORMS="remote")
    assert (shown.stdout, shown.stderr) == (PRINTED, "")


USES_OF_JAX = """
import jax
import numpy as np
from jax.experimental import io_callback
x = np.arange(4, dtype=np.float32)
seen = []
four = jax.ShapeDtypeStruct((4,), "float32")
double = jax.jit(lambda v: jax.pure_callback(lambda a: 2 * np.asarray(a), four, v) + 1)
print(np.asarray(double(double(x))).tolist(), jax.devices()[0].platform)

def note(v):
    seen.append(int(v))
    return np.int32(len(seen))

@jax.jit
def noted(v):
    for _ in range(3):
        int32 = jax.ShapeDtypeStruct((), "int32")
        io_callback(note, int32, v, ordered=True)
        v = v + 1
    jax.debug.print("v is {}", v)
    return v

for i in range(2):
    noted(np.int32(10 * i))
jax.effects_barrier()
print(seen)

def fail(a):
    raise ValueError("it is wrong")

try:
    jax.jit(lambda v: jax.pure_callback(fail, four, v))(x).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    print("ValueError: it is wrong" in str(error))

def scale(arguments, results, attributes):
    results[0][...] = arguments[0] * attributes["factor"]

jax.ffi.register_ffi_target("scale", scale, platform="remote")
call = jax.ffi.ffi_call("scale", four)
print(np.asarray(jax.jit(lambda v: call(v, factor=np.float32(3)))(x)).tolist())
"""
PRINTED_BY_JAX = """\
[3.0, 7.0, 11.0, 15.0] remote
v is 3
v is 13
[0, 1, 2, 10, 11, 12]
True
[0.0, 3.0, 6.0, 9.0]
"""


def test_functions_and_handlers_run_in_a_client_that_is_stock_jax(address: str) -> None:
    shown = run_warm(USES_OF_JAX, PLUGRT_REMOTE=address, JAX_PLATFORMS="remote,cpu")
    assert shown.stdout == PRINTED_BY_JAX, shown.stderr


HANDLED = b"""func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @mine(%x) {
    api_version = 4 : i32,
    backend_config = {a = 2.5 : f32, b = "text", c = {d = true, e = array<i64: 1, 2>},
                      f = dense<[3, 4]> : tensor<2xui8>}
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<i32>
}"""


def test_a_handler_runs_in_the_client_with_the_attributes_of_the_call(client: RemoteClient) -> None:
    from plugrt.capi.extensions.ffi import address_of, make_c_handler

    seen = []

    def handler(arguments: Any, results: Any, attributes: Any) -> None:
        seen.append(attributes)
        assert not arguments[0].flags.writeable
        results[0][...] = arguments[0] * attributes["a"]
        results[1][...] = 7

    for given in (handler, address_of(make_c_handler("mine", handler))):
        client.register_handler("mine", given)
        loaded = client.compile(Program(HANDLED), CompileOptions())
        x = client.buffer_from_host(X, client.devices()[0])
        [[y], [z]] = loaded.execute([(x,)])
        assert y.to_host().tolist() == [2.5, 5, 7.5, 10]
        assert z.to_host() == 7
    for found in seen:
        assert (type(found["a"]), found["b"], bool(found["c"]["d"])) == (np.float32, "text", True)
        assert (found["c"]["e"].tolist(), found["f"].tolist()) == ([1, 2], [3, 4])
        assert (found["c"]["e"].dtype, found["f"].dtype) == (np.int64, np.uint8)
    client.unregister_handler("mine")
    assert loaded.execute([(x,)])[1][0].to_host() == 7, "a program keeps its handler"
    with pytest.raises(NotFound, match="no handler of 'mine'"):
        client.unregister_handler("mine")
    with pytest.raises(PermissionDenied, match="'mine'"):
        client.compile(Program(HANDLED), CompileOptions())
    with pytest.raises(Unimplemented, match="stages of the handler of 'mine'"):
        client.register_handler("mine", HandlerStages(1))
    with pytest.raises(ArgumentTypeError, match="a name and a function"):
        client.register_handler("mine", "handler")  # type: ignore[arg-type]


def test_each_session_calls_its_own_functions(client: RemoteClient, address: str) -> None:
    with closing(RemoteClient(address)) as other:
        one = compiled(client, lambda a: [a[0] + 1])
        two = compiled(other, lambda a: [a[0] * 10])
        for _ in range(3):
            found = [launch(one[0]).tolist(), launch(two[0]).tolist()]
            assert found == [[2, 3, 4, 5], [10, 20, 30, 40]]


def test_results_of_functions_are_checked_and_errors_are_raised(
    client: RemoteClient,
) -> None:
    def fail(_: object) -> list[np.ndarray]:
        raise FailedPrecondition("not now")

    def nested(_: object) -> list[np.ndarray]:
        return [launch(loaded)]

    loaded, program = compiled(client, nested)
    for function, words in (
        (fail, "not now"),
        (lambda a: [a[0][:2]], "was expected"),
        (lambda a: [a[0].astype(np.int32)], "was expected"),
        (nested, "use NumPy in it"),
        (lambda a: [str(a)], "has no attribute"),
    ):
        failing = compiled(client, function)
        with pytest.raises(PjrtError, match=words):
            launch(failing[0])
    works = compiled(client, lambda a: [-a[0]])
    assert launch(works[0]).tolist() == [-1, -2, -3, -4]
    assert program.callbacks


def test_programs_whose_functions_cannot_be_called_are_refused(client: RemoteClient) -> None:
    for program, error, words in (
        (Program(CALLS, callbacks={8: lambda a: a}), InvalidArgument, "calls the function 7"),
        (Program(CALLS, "hlo", callbacks={7: lambda a: a}), Unimplemented, "host_callbacks"),
    ):
        with pytest.raises(error, match=words):
            client.compile(program, CompileOptions())


def test_a_function_has_a_limit_of_time(tmp_path: Path) -> None:
    ended = threading.Event()
    limited = Policy(callback_seconds=0.3)
    with (
        serving(start({}), tmp_path, limited) as address,
        closing(RemoteClient(address)) as client,
    ):
        waits = compiled(client, lambda a: [a[0], ended.wait(60)][:1])
        with pytest.raises(PjrtError, match="the function within"):
            launch(waits[0])
        ended.set()
        answers = compiled(client, lambda a: [a[0]])
        assert launch(answers[0]).tolist() == X.tolist()


@pytest.mark.parametrize("paced", [True, False])
def test_a_client_may_send_while_its_function_runs(tmp_path: Path, paced: bool) -> None:
    """It sends more than the server keeps: a paced client waits, and another's launch fails."""
    numpy_client = numpy_backend.create_client({})
    sent = threading.Event()

    def function(a: list[np.ndarray]) -> list[np.ndarray]:
        sent.wait(0.5 if paced else 60)
        return [a[0] + 1]

    with (
        serving(numpy_client, tmp_path, Policy(backlog_bytes=1 << 20)) as address,
        closing(RemoteClient(address)) as client,
    ):
        client.connection.most_ahead = 1 << 19 if paced else 1 << 40
        loaded, _ = compiled(client, function)
        x = client.buffer_from_host(X, client.devices()[0])
        [[y]] = loaded.execute([(x,)])
        rows = [np.full(1 << 14, i, np.float32) for i in range(64)]
        puts = [client.buffer_from_host(row, client.devices()[0]) for row in rows]
        sent.set()
        if paced:
            assert y.to_host().tolist() == [2, 3, 4, 5]
        else:
            with pytest.raises(ResourceExhausted, match="follow these messages"):
                y.to_host()
        assert all(np.array_equal(put.to_host(), row) for put, row in zip(puts, rows, strict=True))


def test_launches_that_have_not_begun_can_be_cancelled(client: RemoteClient) -> None:
    """They wait behind a launch that waits for a function of the client."""
    answers = threading.Event()
    calls, _ = compiled(client, lambda a: [a[0], answers.wait(60)][:1])
    loaded = client.compile(Program(ADD), CompileOptions())
    assert loaded.cancel() == 0
    x = client.buffer_from_host(X, client.devices()[0])
    [[first]] = calls.execute([(x,)])
    others = [loaded.execute([(x,)])[0][0] for _ in range(3)]
    [[last]] = calls.execute([(x,)])
    assert [loaded.cancel(), loaded.cancel()] == [3, 0]
    answers.set()
    assert (first.to_host().tolist(), last.to_host().tolist()) == (X.tolist(), X.tolist())
    for other in others:
        with pytest.raises(Cancelled, match="before it had begun"):
            other.to_host()
    [[again]] = loaded.execute([(x,)])
    assert again.to_host().tolist() == [2, 4, 6, 8]


PRODUCT = b"""func.func @main(%x: tensor<768x768xf32>) -> tensor<768x768xf32> {
  %0 = stablehlo.dot %x, %x : (tensor<768x768xf32>, tensor<768x768xf32>) -> tensor<768x768xf32>
  return %0 : tensor<768x768xf32>
}"""


def test_launches_that_wait_for_their_turn_can_be_cancelled(
    client: RemoteClient, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_RECENT", 60.0)
    with closing(RemoteClient(address)) as other:
        launch(other.compile(Program(ADD), CompileOptions()))
        loaded = client.compile(Program(PRODUCT), CompileOptions())
        x = client.buffer_from_host(np.eye(768, dtype=np.float32), client.devices()[0])
        results = [loaded.execute([(x,)])[0][0] for _ in range(60)]
        count = loaded.cancel()
        assert 0 < count < 60
        assert results[0].to_host()[0, 0] == 1
        with pytest.raises(Cancelled):
            results[-1].block_until_ready()


def test_a_backend_in_this_process_cancels_no_launch() -> None:
    here = start({})
    with pytest.raises(Unimplemented, match="cancel"):
        here.compile(Program(ADD), CompileOptions()).cancel()
    here.close()


DIES = """
import os, signal
import numpy as np
import plugrt
def die(a):
    os.kill(os.getpid(), signal.SIGKILL)
f = plugrt.jit(lambda v: plugrt.pure_callback(die, plugrt.ShapeDtypeStruct((4,), "float32"), v))
f(np.ones(4, np.float32)).block_until_ready()
"""


def test_a_client_that_dies_in_its_function_leaves_nothing(
    client: RemoteClient, address: str
) -> None:
    shown = run_warm(DIES, PLUGRT_REMOTE=address, JAX_PLATFORMS="remote")
    assert shown.returncode != 0
    assert becomes_true(lambda: client.stats()["sessions"] == 1)
    works = compiled(client, lambda a: [-a[0]])
    assert launch(works[0]).tolist() == [-1, -2, -3, -4]
