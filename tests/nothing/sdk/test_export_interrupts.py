"""Interrupts in the Python frames of an exported plugin, with plugrt as the host."""

from __future__ import annotations

import sys

import pytest

from plugrt.interface import Client
from plugrt_sdk import BackendClient
from support.apart import runs_apart
from support.distributions import run_python
from support.exported import Exported, compile_add, put
from support.late_client import Adder
from support.requirements import needs_jax

INTERRUPTED = """
import random, signal, sys, time
import numpy as np
import plugrt
from plugrt.plugins import LibraryPlugin
from plugrt_sdk import BackendClient
from plugrt_sdk.export import export_capsule
from support.late_client import Adder, LateAdder

class Late(Exception):
    pass

def handler(*_):
    raise RAISED

table = export_capsule(lambda **_: BackendClient(BACKEND()))
plugrt.plugins.register(LibraryPlugin("adder", c_api=table))
sys.unraisablehook = lambda _: None  # for finalisers, where Python drops what handlers raise
signal.signal(signal.SIGALRM, handler)
call, x = plugrt.jit(lambda v: v + v), plugrt.device_put(np.ones(4, np.float32))
uses = {
    "put": lambda: plugrt.device_put(np.ones(4, np.float32)).block_until_ready(),
    "compile": lambda: plugrt.jit(lambda v: v + v)(x),
    "call": lambda: call(x).block_until_ready(),
    "read": lambda: np.asarray(call(x)),
    "delete": lambda: call(x).delete(),
}
random, wrong = random.Random(7), []
for name, use in uses.items():
    use()
    begin = time.perf_counter()
    for _ in range(20):
        use()
    seconds, raised = (time.perf_counter() - begin) / 16, 0
    for _ in range(200):
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, seconds))
                use()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except type(RAISED):
            raised += 1
        except BaseException as error:
            wrong.append((name, repr(error)[-300:]))
    if raised < 5:
        wrong.append((name, raised))
print(wrong or "right")
"""


@runs_apart("sdk")
@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
@pytest.mark.parametrize("backend", ["Adder", "LateAdder"])
@pytest.mark.parametrize("raised", ["KeyboardInterrupt()", "SystemExit(3)", "Late()"])
def test_exceptions_of_signal_handlers_reach_the_caller(raised: str, backend: str) -> None:
    """Earlier, it was the error `Cancelled` or `Internal` of the library."""
    code = INTERRUPTED.replace("RAISED", raised).replace("BACKEND", backend)
    done = run_python(code, JAX_PLATFORMS="adder")
    assert done.stdout == "right\n", done.stderr[-2000:]


UNDER_JAX = """
import random, signal, time
import jax
import numpy as np
from jax._src import xla_bridge
from plugrt_sdk import BackendClient
from plugrt_sdk.export import export_capsule
from support.late_client import Adder

def handler(*_):
    raised.append(RAISED)
    raise raised[-1]

table = export_capsule(lambda **_: BackendClient(Adder()))
xla_bridge.register_plugin("adder", c_api=table)
signal.signal(signal.SIGALRM, handler)
x, call = jax.device_put(np.ones(4, np.float32)), jax.jit(lambda v: v + v)
call(x).block_until_ready()
begin = time.perf_counter()
for _ in range(20):
    call(x).block_until_ready()
seconds, random, raised, wrong = (time.perf_counter() - begin) / 20, random.Random(7), [], []
for _ in range(200):
    before = len(raised)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, seconds))
            call(x).block_until_ready()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:
        if len(raised) == before or error is not raised[-1]:
            wrong.append(repr(error)[:200])
print(len(raised) > 20, wrong)
"""


@runs_apart("sdk")
@needs_jax
@pytest.mark.parametrize("raised", ["KeyboardInterrupt()", "SystemExit(3)", "TimeoutError()"])
def test_exceptions_of_signal_handlers_reach_jax_users(raised: str) -> None:
    """Earlier, two fifths arrived as ValueError, from JAX's launch function."""
    done = run_python(UNDER_JAX.replace("RAISED", raised), JAX_PLATFORMS="adder,cpu")
    assert done.stdout == "True []\n", done.stderr[-2000:]


@pytest.mark.parametrize("method", ["put", "get", "compile", "launch", "copy"])
@pytest.mark.parametrize("raised", [KeyboardInterrupt("now"), SystemExit(3)], ids=repr)
def test_an_exit_is_raised_as_it_was(method: str, raised: BaseException) -> None:
    exported = Exported(lambda: BackendClient(Adder(2)))
    client: Client = exported.client()
    held = put(client)
    executable = compile_add(client)
    exported.backend.failures[method] = raised
    uses = {
        "put": lambda: put(client),
        "get": lambda: held.to_host(),
        "compile": lambda: compile_add(client),
        "copy": lambda: held.copy_to_device(client.devices()[1]),
        "launch": lambda: executable.execute([[held], [held]]),
    }
    with pytest.raises(type(raised)) as caught:
        uses[method]()
    assert caught.value is raised
    exported.backend.failures.clear()
    uses[method]()  # the process and the client live
    client.close()
