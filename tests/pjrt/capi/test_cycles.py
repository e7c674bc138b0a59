"""Handles under garbage collection: each is freed once, after its last use."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import plugrt.capi
from support.apart import runs_apart
from support.xla_cpu import library_path, needs_library, run_python

pytestmark = [runs_apart("lifetimes"), needs_library]


def run_on_library(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code whose default backend is the library."""
    names = {
        "PJRT_NAMES_AND_LIBRARY_PATHS": f"xla_cpu:{library_path()}",
        "JAX_PLATFORMS": "xla_cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **names},
        check=False,
    )


OTHERS = """
import gc, weakref
import numpy as np
import plugrt
kept = []
def collect():
    gc.collect()
    # Whoever was given the memory of a freed array writes over it now.
    return [plugrt.device_put(np.full(4, -7, 'float32')) for _ in range(50)]
def put():
    return plugrt.device_put(np.arange(4, dtype='float32'))
"""

USES = {
    "a finaliser keeps the array": """
class Owner:
    def __init__(self, a): self.a, self.me = a, self
    def __del__(self): kept.append(self.a)
Owner(put())
others = collect()
print(np.asarray(kept[0]).tolist(), np.asarray(plugrt.jit(lambda a: a + 1)(kept[0])).tolist())
""",
    "a generator uses its array at its end": """
def generate(x):
    try:
        yield
    finally:
        kept.append(np.asarray(plugrt.jit(lambda a: a + 1)(x)).tolist())
        kept.append(np.asarray(x).tolist())
class Holder: pass
holder = Holder()
holder.it, holder.me = generate(put()), holder
next(holder.it)
del holder
others = collect()
print(kept[1], kept[0])
""",
    "a finaliser kept it twice": """
class Owner:
    def __init__(self, a): self.a, self.me = a, self
    def __del__(self): kept.append(self.a)
Owner(put())
collect()
Owner(kept.pop())
others = collect()
print(np.asarray(kept[0]).tolist(), np.asarray(plugrt.jit(lambda a: a + 1)(kept[0])).tolist())
""",
    "a weak reference's callback uses another array of the cycle": """
class Node: pass
def make():
    node, x = Node(), put()
    node.me, node.x = node, x
    kept.append(weakref.ref(node, lambda _, x=x: kept.append((
        np.asarray(x).tolist(), np.asarray(plugrt.jit(lambda a: a + 1)(x)).tolist()))))
make()
others = collect()
print(*kept[1])
""",
    "a view of it is kept": """
class Owner:
    def __init__(self, a): self.a, self.view, self.me = a, np.asarray(a), self
    def __del__(self): kept.append(self.view)
Owner(plugrt.jit(lambda a: a * 1)(put()))
others = collect()
print(kept[0].tolist(), (kept[0] + 1).tolist())
""",
    "a capsule of it is kept": """
class Source:
    def __init__(self, capsule): self.capsule = capsule
    def __dlpack__(self, **_): return self.capsule
    def __dlpack_device__(self): return (1, 0)
class Owner:
    def __init__(self, a): self.source, self.me = Source(a.__dlpack__()), self
    def __del__(self): kept.append(self.source)
Owner(put())
others = collect()
view = np.from_dlpack(kept.pop())
print(view.tolist(), (view + 1).tolist())
""",
}


@pytest.mark.parametrize("use", USES)
def test_objects_that_the_collector_finds_can_still_be_used(use: str) -> None:
    done = run_on_library(OTHERS + USES[use])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[0.0, 1.0, 2.0, 3.0] [1.0, 2.0, 3.0, 4.0]\n"


GRAPHS = """
import gc, os, random, sys
import numpy as np
from plugrt.capi import create_client, load_library
from plugrt.capi.loading.handle_ledger import Ledger
from plugrt.interface import CompileOptions, HostBufferSemantics, Program
library = load_library(os.environ["PATH_OF_LIBRARY"])
ledger = Ledger(library)
add = Program(b'''module { func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32> return %0 : tensor<4xf32> } }''')
EXPECTED = [0.0, 1.0, 2.0, 3.0]
uses, wrong, kept = [0], [], []

class Node:
    '''A member of a graph: uses what it holds when it is collected, and may keep a neighbour.'''
    def __init__(self, what, value): self.what, self.value, self.links = what, value, []
    def use(self):
        what, value = self.what, self.value
        if what == "buffer": found = value.to_host().tolist()
        elif what == "view": found = value.tolist()
        elif what == "executable":
            ((out,),) = value[0].execute([(value[1],)])
            found = (out.to_host() / 2).tolist()
        elif what == "client":
            found = value.buffer_from_host(np.arange(4, dtype="f"), value.devices()[0])
            found = found.to_host().tolist()
        elif what == "event": value.wait(); found = EXPECTED
        elif what == "capsule":
            found = value[0].buffer_from_dlpack(value[1](), value[0].devices()[0])
            found = found.to_host().tolist()
        elif what == "analysis": found = EXPECTED if value.num_outputs == 1 else value.num_outputs
        uses[0] += 1
        if found != EXPECTED: wrong.append((what, found))
    def __del__(self):
        for node in (self, *self.links): node.use()
        if chance.random() < 0.2: kept.append(chance.choice([self, *self.links]))

def values(client, kind):
    device = client.devices()[0]
    semantics = chance.choice(list(HostBufferSemantics)[:3])
    buffer = client.buffer_from_host(np.arange(4, dtype="f"), device, None, semantics)
    if kind == "buffer": return buffer
    if kind == "view": return buffer.to_host()
    if kind == "executable": return client.compile(add, CompileOptions()), buffer
    if kind == "client": return client
    if kind == "event": return buffer.ready_event()
    if kind == "capsule": return client, buffer.to_dlpack
    if kind == "analysis": return client.compile(add, CompileOptions()).executable

KINDS = ["buffer"] * 6 + ["view", "view", "executable", "client", "event", "capsule", "analysis"]

def graph():
    client = create_client(library, {"cpu_device_count": 1}, name="x")
    nodes = []
    for _ in range(chance.randint(2, 12)):
        kind = chance.choice(KINDS)
        nodes.append(Node(kind, values(client, kind)))
    for node in nodes:
        node.links = chance.choices(nodes, k=chance.randint(0, 3))
    nodes[0].links.append(nodes[-1])
    nodes[-1].links.append(nodes[0])

# Modules that uses import are whole first: a collection amid such an import runs uses that need it.
gc.disable()
chance = random.Random(0)
for kind in KINDS:
    Node(kind, values(create_client(library, {"cpu_device_count": 1}, name="x"), kind)).use()
gc.enable()

for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    chance = random.Random(seed)
    graph()
    if chance.random() < 0.5: gc.collect()
    for node in kept: node.use()
    if chance.random() < 0.5: kept.clear()
node = None
for _ in range(5):
    kept.clear()
    gc.collect()
    ledger.open_handles()  # does what the collection's finalisers have put off
print(uses[0] > 100, wrong, ledger.open_handles())
"""


@pytest.mark.parametrize("start", [0, 100])
def test_random_graphs_of_handles(start: int) -> None:
    code = f"import sys; sys.argv[1:] = ['{start}', '{start + 12}']\n" + GRAPHS
    done = run_python(code, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "True [] {}\n"


AT_THE_END = """
import atexit, gc, sys
kept = []
@atexit.register
def empty():
    # As the interpreter does with modules that somebody refers to, before the last objects go.
    for name, module in sys.modules.items():
        if name.startswith("plugrt.capi"):
            vars(module).update({key: None for key in vars(module) if key[:2] != "__"})
    kept.clear()
    gc.collect()
import numpy as np
import plugrt
f = plugrt.jit(lambda a: a + 1)
x = plugrt.device_put(np.ones(4, "float32"))
class Holder: pass
holder = Holder()
holder.me, holder.all = holder, (f(x), np.asarray(f(x)), plugrt.device_put(np.zeros(1 << 16)))
def generate():
    y = f(x)
    try:
        yield y
    finally:
        del y
kept += [f(x), np.asarray(f(x)), holder, generate(), x.__dlpack__(), f.lower(x).compile(), f(x)]
kept[-1].block_until_ready()
next(kept[3])
del f, x, holder
"""


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "plugrt.clear_backends()"])
def test_the_end_of_the_interpreter_is_quiet(end: str) -> None:
    done = run_on_library(AT_THE_END + end)
    assert (done.returncode, done.stderr) == (0, "")


def _finalizers() -> list[tuple[str, str]]:
    """Returns (file, class) of each ``__del__`` with a body, and (file, gc) of ffi.gc."""
    found = []
    for path in Path(plugrt.capi.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "ffi.gc":
                found.append((path.name, "ffi.gc"))
            if isinstance(node, ast.ClassDef):
                found += [
                    (path.name, node.name)
                    for item in node.body
                    if isinstance(item, ast.FunctionDef)
                    and item.name == "__del__"
                    and not all(isinstance(s, ast.Pass) for s in item.body)
                ]
    return found


def test_handles_are_freed_in_one_way() -> None:
    # `own` frees handles; a buffer's finaliser is a fast path, and the third counts references.
    assert sorted(_finalizers()) == [
        ("buffer_base.py", "PythonBuffer"),
        ("owned_handles.py", "_RefcountProbe"),
    ]


FORKED = """
import os, sys
import numpy as np
import plugrt
x = plugrt.jit(lambda a: a + 1)(np.arange(4, dtype="float32"))
view = np.asarray(x)
y = plugrt.device_put(np.ones(4, "float32"))
f = plugrt.jit(lambda a: a * 2)
z = f(x)
{before}
child = os.fork()
if child == 0:
    {inside}
    sys.exit(7)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), np.asarray(f(x)).tolist())
"""


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("", "pass"),
        ("", "del x, y, z, f, view"),
        ("", "plugrt.clear_backends(); import gc; gc.collect()"),
        ("class A: pass\na = A(); a.me, a.all = a, (x, y, z, f, view)", "del a"),
        ("", "print(view.tolist()); sys.stdout.flush()"),
    ],
)
def test_a_forked_child_leaves_the_clients_alone(before: str, inside: str) -> None:
    done = run_on_library(FORKED.format(before=before, inside=inside))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "7 [2.0, 4.0, 6.0, 8.0]"
