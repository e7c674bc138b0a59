"""Python functions of programs over ``remote``: they run in the client."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from plugrt.errors import FailedPrecondition, InvalidArgument, PjrtError, Unimplemented
from plugrt.interface import Client, CompileOptions, LoadedExecutable, Program
from plugrt_cpu.create_client import start
from plugrt_numpy import plugin as numpy_backend
from plugrt_remote.client import RemoteClient
from plugrt_remote.serving.backend import Policy
from support.device_server import becomes_true, serving
from support.distributions import run_warm

CALLS = b"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @plugrt_host_callback(%x) {
    api_version = 4 : i32, backend_config = {index = 7 : ui64}
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
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


def test_each_session_calls_its_own_functions(client: RemoteClient, address: str) -> None:
    with closing(RemoteClient(address)) as other:
        one = compiled(client, lambda a: [a[0] + 1])
        two = compiled(other, lambda a: [a[0] * 10])
        for _ in range(3):
            found = [launch(one[0]).tolist(), launch(two[0]).tolist()]
            assert found == [[2, 3, 4, 5], [10, 20, 30, 40]]


def test_what_a_function_returns_is_checked_and_failures_reach_the_result(
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
