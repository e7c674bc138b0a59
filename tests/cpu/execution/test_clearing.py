"""`clear_backends`: closed clients are freed, and the next call starts new ones."""

from __future__ import annotations

from support.distributions import run_python
from support.platforms import platform_environment

_BEFORE = """
import gc, weakref
import numpy as np
import plugrt
from plugrt import device_put
from plugrt.sharding import PmapSharding
from plugrt import clear_backends, devices, get_backend
from plugrt import jit
from plugrt import pmap
from support.ops import add, mul

X = np.arange(3, dtype=np.float32)
client = weakref.ref(get_backend())

@jit
def f(x):
    return add(mul(x, 2), 1)
"""


USES = [
    "pass",
    "device_put(X)",
    "add(X, 1)",
    "f(X); f(device_put(X, devices()[1]))",
    "jit(lambda x: f(x))(X)",
    "np.asarray(device_put(np.ones((2, 3)), PmapSharding(devices()[:2])))",
    "device_put(device_put(np.ones((2, 3)), PmapSharding(devices()[:2])), devices()[1])",
    "f.lower(X).compile()(X)",
    "pmap(lambda x: add(x, 1))(np.ones((2, 3), np.float32))",
    "plugrt.array_api.sum(plugrt.array_api.asarray([1.0, 2.0])[1:])",
    "kept = f(X).__array__()",
]
"""The last calls ``__array__``: from Python 3.12 on, views that NumPy makes keep the array."""


def test_the_client_is_freed() -> None:
    done = run_python(
        f"""{_BEFORE}
for use in {USES!r}:
    client = weakref.ref(get_backend())
    exec(use)
    clear_backends()
    gc.collect()
    print(use, client())
print(np.asarray(f(X)), np.asarray(add(X, 1)), get_backend() is not None)
""",
        **platform_environment(),
        JAX_NUM_CPU_DEVICES="2",
    )
    assert done.stdout.splitlines() == [
        *[f"{use} None" for use in USES],
        "[1. 3. 5.] [1. 2. 3.] True",
    ], done.stdout + done.stderr


def test_arrays_of_a_closed_client() -> None:
    done = run_python(
        f"""{_BEFORE}
x = f(X)
clear_backends()
print(np.asarray(x))
fresh = f(X)
print(fresh.device is not x.device, np.asarray(fresh))
try:
    print(np.asarray(add(device_put(x, devices()[0]), 1)))
except plugrt.errors.PlugrtError as error:
    print("refused")
""",
        **platform_environment(),
        JAX_NUM_CPU_DEVICES="2",
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "[1. 3. 5.]", done.stderr
    assert lines[1] == "True [1. 3. 5.]"
    assert lines[2] in ("[2. 4. 6.]", "refused")


def test_clear_caches_leaves_backends_and_arrays() -> None:
    done = run_python(
        f"""{_BEFORE}
x = f(X)
plugrt.clear_caches()
print(np.asarray(f(x)), get_backend() is client(), f(x).device is x.device)
""",
        **platform_environment(),
        JAX_NUM_CPU_DEVICES="2",
    )
    assert done.stdout.split() == ["[", "3.", "7.", "11.]", "True", "True"], done.stderr
