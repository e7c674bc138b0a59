"""Handles, memory, and the end of the process."""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest

from plugrt.capi import Library, create_client
from support.apart import runs_apart
from support.native_core import SANITIZED
from support.requirements import cannot
from support.xla_cpu import library_path, run_python

pytestmark = runs_apart("lifetimes")

SETUP = """
import gc, os, sys, threading, time
import numpy as np
from plugrt.capi import create_client, load_library
from plugrt.capi.loading.handle_ledger import Ledger
from plugrt.interface import CompileOptions, HostBufferSemantics, Program
def add(kind):
    return Program((
        f"module {{ func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{"
        f"%0 = stablehlo.add %a, %b : {kind} return %0 : {kind} }} }}").encode())
library = load_library(os.environ["PATH_OF_LIBRARY"])
"""

PENDING = (
    SETUP
    + """
N = 1200
mul = Program(f'''module {{ func.func @main(%a: tensor<{N}x{N}xf32>) -> tensor<{N}x{N}xf32> {{
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
      : (tensor<{N}x{N}xf32>, tensor<{N}x{N}xf32>) -> tensor<{N}x{N}xf32>
  return %0 : tensor<{N}x{N}xf32> }} }}'''.encode())
client = create_client(library, {}, name="x")
device = client.devices()[0]
loaded = client.compile(mul, CompileOptions())
source = np.ones((N, N), np.float32)
buffer = client.buffer_from_host(source, device, None, HostBufferSemantics.IMMUTABLE_ZERO_COPY)
results = [loaded.execute([(buffer,)]) for _ in range(4)]
"""
)

ENDINGS = {
    "everything alive": "",
    "a cycle holds all": "class A: pass\na = A(); a.all = (a, client, buffer, results, loaded)",
    "results dropped": "del results",
    "client closed": "client.close(); del client, device",
    "only results left": "client.close(); del client, device, buffer, loaded, source",
    "callback waiting": "results[-1][0][0].ready_event().on_ready(lambda error: None)",
    "exception": "raise SystemExit(0)",
    "thread": "threading.Thread(target=lambda: results[-1][0][0].to_host()).start()",
    "handler under way": """
from plugrt.capi.extensions import ffi
def slow(arguments, results, attributes):
    time.sleep(0.2)
    results[0][...] = arguments[0]
ffi.register_handler(library, "slow", slow, "Host")
call = Program(b'''module { func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @slow(%a) {api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32> } }''')
calls = client.compile(call, CompileOptions())
small = client.buffer_from_host(np.ones(4, np.float32), device)
waiting = [calls.execute([(small,)]) for _ in range(2)]
""",
}


@pytest.fixture(autouse=True)
def _needs_library() -> None:
    if library_path() is None:
        cannot("the wheel xla-cpu-pjrt is not installed")


@pytest.mark.parametrize("ending", ENDINGS)
def test_exit_with_work_under_way(ending: str) -> None:
    done = run_python(PENDING + ENDINGS[ending])
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_memory_and_handles_after_many_launches() -> None:
    code = (
        SETUP
        + """
ledger = Ledger(library)
client = create_client(library, {}, name="x")
device = client.devices()[0]
loaded = client.compile(add("tensor<4xf32>"), CompileOptions())
source = np.ones(4, np.float32)
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
def rounds(count):
    argument = client.buffer_from_host(source, device)
    for _ in range(count):
        loaded.execute([(argument,), (argument,)])
        client.buffer_from_host(source, device).to_host()
        client.buffer_from_host(
            source, device, None, HostBufferSemantics.IMMUTABLE_ZERO_COPY).block_until_ready()
    loaded.execute([(argument,), (argument,)])[0][0].to_host()
    gc.collect()
    return resident()
before, after = rounds(1_000), rounds(10_000)
try:
    loaded.execute([])
except Exception:
    pass
stored = loaded.executable.serialize()
again = client.deserialize_executable(stored)
topology = client.topology()
copy = client.buffer_from_host(source, device).copy_to_device(client.devices()[1])
results, events = loaded.execute_with_events([(copy.copy_to_device(device),)] * 2)
del loaded, again, topology, copy, results, events, device
client.close()
del client
gc.collect()
print(after - before, ledger.open_handles(), sum(ledger.created.values()) > 60_000)
"""
    )
    done = run_python(code, timeout=200)
    assert done.stderr == ""
    growth, rest = done.stdout.split(maxsplit=1)
    assert float(growth) < 5 or SANITIZED
    assert rest.strip() == "{} True"


THINGS = ("client", "loaded", "buffer", "out")


@pytest.mark.parametrize("order", list(itertools.permutations(THINGS)))
def test_destruction_in_any_order(library: Library, order: tuple[str, ...]) -> None:
    from plugrt.interface import CompileOptions
    from support.xla_cpu import add

    client = create_client(library, {"cpu_device_count": 1}, name="x")
    things = {"client": client, "loaded": client.compile(add(), CompileOptions())}
    things["buffer"] = client.buffer_from_host(np.ones(4, np.float32), client.devices()[0])
    things["out"] = things["loaded"].execute([(things["buffer"],)] * 2)[0][0]  # type: ignore[attr-defined]
    del client
    for name in order:
        del things[name]
        gc.collect()
        if "out" in things:
            assert things["out"].to_host().tolist() == [2, 2, 2, 2]  # type: ignore[attr-defined]
