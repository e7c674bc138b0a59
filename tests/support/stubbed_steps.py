"""Uses libraries that have a stub for one function, step by step.

``python -m support.stubbed_steps FOLDER NAME…`` uses the library of each name in FOLDER, and
prints a line of JSON before and after each step of each. HOST=jax is JAX instead of plugrt, as
the session ``stubbed`` runs it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

X = np.arange(6, dtype=np.float32).reshape(2, 3)
OPTIONS = {"cpu_device_count": 2}
STEPS: dict[str, Callable[[Any, str], Any]] = {}
"""Each gets the host (plugrt or a namespace of JAX's) and a platform's name."""


def step(function: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    STEPS[function.__name__] = function
    return function


def expect(found: Any, right: Any) -> None:
    np.testing.assert_array_equal(np.asarray(found), np.asarray(right))


@step
def devices(host: Any, name: str) -> None:
    found = host.devices(name)
    assert len(found) == 2
    assert [d.id for d in found] == [0, 1]
    assert [d.platform for d in found] == [found[0].platform] * 2
    repr(found)


@step
def read(host: Any, name: str) -> None:
    x = host.device_put(X, host.devices(name)[0])
    expect(x, X)
    assert float(host.device_put(np.float32(3), host.devices(name)[0])) == 3
    empty = np.zeros((0, 2), np.float32)
    expect(host.device_put(empty, host.devices(name)[0]), empty)
    big = np.arange(300_000, dtype=np.int32)
    expect(host.device_put(big, host.devices(name)[1]), big)


@step
def jit(host: Any, name: str) -> None:
    x = host.device_put(X, host.devices(name)[0])
    run = host.jit(lambda a, b: (a + b, a * 2))
    for _ in range(3):
        total, double = run(x, x)
        expect(total, X * 2)
        expect(double, X * 2)


@step
def operators(host: Any, name: str) -> None:
    x = host.device_put(X, host.devices(name)[0])
    expect(x + x, X + X)
    expect((x * 2)[1], X[1] * 2)


@step
def copy(host: Any, name: str) -> None:
    first, second = host.devices(name)
    for _ in range(4):
        y = host.device_put(host.device_put(X, first), second)
        expect(y, X)
        assert y.devices() == {second}
    expect(host.device_put(host.jit(lambda a: a + 1)(y), first), X + 1)


@step
def sharded(host: Any, name: str) -> None:
    mesh = host.Mesh(np.array(host.devices(name)), ("d",))
    sharding = host.NamedSharding(mesh, host.PartitionSpec("d"))
    x = host.device_put(X, sharding)
    expect(x, X)
    expect(host.jit(lambda a: a @ a.T)(x), X @ X.T)


@step
def pmap(host: Any, name: str) -> None:
    run = host.pmap(lambda a: host.psum(a, "i"), "i", devices=host.devices(name))
    for _ in range(2):
        expect(run(X), np.tile(X.sum(0), (2, 1)))


@step
def donate(host: Any, name: str) -> None:
    run = host.jit(lambda a: a + 1, donate_argnums=0)
    for _ in range(2):
        x = host.device_put(X, host.devices(name)[0])
        expect(run(x), X + 1)
        assert x.is_deleted()


@step
def delete(host: Any, name: str) -> None:
    x = host.device_put(X, host.devices(name)[0])
    assert not x.is_deleted()
    x.block_until_ready()
    x.delete()
    assert x.is_deleted()
    y = host.device_put(X, host.devices(name)[0])
    del y


@step
def compiled(host: Any, name: str) -> None:
    x = host.device_put(X, host.devices(name)[0])
    made = host.jit(lambda a: a * 3).lower(x).compile()
    expect(made(x), X * 3)


@step
def no_results(host: Any, name: str) -> None:
    x = host.device_put(X, host.devices(name)[0])
    assert host.jit(lambda a: None)(x) is None


@step
def dtypes(host: Any, name: str) -> None:
    for dtype in (np.bool_, np.int8, np.uint16, np.float16, np.int32):
        x = host.device_put(X.astype(dtype), host.devices(name)[0])
        expect(x, X.astype(dtype))
        expect(host.jit(lambda a: a)(x), X.astype(dtype))


@step
def int4(host: Any, name: str) -> None:
    import ml_dtypes

    x = host.device_put(X.astype(ml_dtypes.int4), host.devices(name)[0])
    expect(np.asarray(x).astype(np.int8), X.astype(np.int8))


def plugrt_host(folder: str, names: list[str]) -> Any:
    import plugrt
    from plugrt import lax, sharding
    from plugrt.plugins import LibraryPlugin

    class Host:
        devices = staticmethod(plugrt.devices)
        device_put = staticmethod(plugrt.device_put)
        jit = staticmethod(plugrt.jit)
        pmap = staticmethod(plugrt.pmap)
        psum = staticmethod(lax.psum)
        Mesh, NamedSharding = sharding.Mesh, sharding.NamedSharding
        PartitionSpec = sharding.PartitionSpec

    for name in names:
        plugrt.plugins.register(LibraryPlugin(name, f"{folder}/{name}.so", OPTIONS))
    return Host


def jax_host(folder: str, names: list[str]) -> Any:
    import jax
    from jax._src import xla_bridge

    class Host:
        devices = staticmethod(jax.devices)
        device_put = staticmethod(jax.device_put)
        jit = staticmethod(jax.jit)
        pmap = staticmethod(jax.pmap)
        psum = staticmethod(jax.lax.psum)
        Mesh, NamedSharding = jax.sharding.Mesh, jax.sharding.NamedSharding
        PartitionSpec = jax.sharding.PartitionSpec

    for name in names:
        xla_bridge.register_plugin(name, library_path=f"{folder}/{name}.so", options=OPTIONS)
    return Host


def main(folder: str, names: list[str]) -> None:
    """Runs every step on every library."""
    make = jax_host if os.environ.get("HOST") == "jax" else plugrt_host
    host = make(folder, names)
    for name in names:
        for title, function in STEPS.items():
            print(json.dumps({"begin": [name, title]}), flush=True)
            try:
                function(host, name)
                outcome = "ok"
            except Exception as error:  # noqa: BLE001  # the outcome
                outcome = f"{type(error).__name__}: {error}"
            print(json.dumps({"end": [name, title], "outcome": outcome}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
