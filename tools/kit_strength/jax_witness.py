"""Prints what stock JAX observes of `tools.kit_strength.backends.plugin`, a line a statement."""

import hashlib
import os
import threading

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from tools.kit_strength.backends import plugin

from plugrt_sdk.export import offer_to_jax

SIZES = (0, 1, 3, 7, 16, 31, 33, 63, 65, 127, 129, 255, 257, 1000, 1023, 1025, 4096, 65537, 1_000_003)  # fmt: skip # noqa: E501
SHAPES = ((), (5,), (3, 4), (2, 3, 4), (2, 3, 2, 3), (2, 3, 2, 3, 2), (2, 1, 3, 2, 3, 2))
TYPES = (*["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint64", "float16", "float32", "float64"],  # noqa: E501
         "bfloat16", "complex64", "float8_e4m3fn", "int4")  # fmt: skip


def _array(shape: tuple[int, ...], name: str = "int32") -> np.ndarray:
    random = np.random.default_rng(1)
    numbers = random.integers(1, 100, shape)
    if name in ("int4", "float8_e4m3fn"):
        numbers = numbers % 8
    return numbers.astype(getattr(ml_dtypes, name, None) or np.dtype(name))


def _say(what: object, array: object) -> None:
    data = np.asarray(array)
    print(what, data.dtype, data.shape, hashlib.sha256(data.tobytes()).hexdigest()[:16], flush=True)


def _error(call: object, *arguments: object) -> None:
    try:
        call(*arguments)
        print("no error")
    except Exception as error:  # noqa: BLE001  what JAX makes of the library's code is printed
        print(type(error).__name__, str(error).partition(":")[0])


def _usage() -> tuple[int, int, int]:
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), pages


def _tour() -> None:
    last = jax.devices()[-1]
    for shape in (*((n,) for n in SIZES), *SHAPES):
        x = jax.device_put(_array(shape))
        _say("put", x)
        _say("copy", jax.device_put(x, last))
        _say("sum", jax.jit(lambda a: a + a)(x))
    for name in TYPES:
        x = jax.device_put(_array((5, 3), name))
        _say("put", x)
        _say("copy", jax.device_put(x, last))
        _say("launch", jax.jit(lambda a: (a[::-1], a.T))(x)[0])


def main() -> None:
    """Runs the statements."""
    jax.config.update("jax_enable_x64", True)
    offer_to_jax(plugin)
    print(len(jax.devices()), bool(jax.devices()[0].client.platform_version))
    _tour()
    worker = threading.Thread(target=_tour)
    worker.start()
    worker.join()
    devices = jax.devices()
    for device in devices:
        x = jax.device_put(_array((6,)), device)
        _say("device", x)
        _say("on device", jax.jit(lambda a: a * 3 + 1)(x))
    one, two = jax.jit(lambda a: (a + 1, a * 2))(jnp.arange(4))
    _say("first", one)
    _say("second", two)
    mesh = jax.make_mesh((len(devices),), ("i",))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    _say("spread", jax.jit(lambda a: a + a)(jax.device_put(_array((len(devices) * 2,)), spread)))
    for f in (jnp.add, jnp.subtract, jnp.multiply):
        _say(f.__name__, jax.jit(f)(_array((4,)), _array((4,))[::-1]))
    x = jax.device_put(_array((4,)))
    custom = jax.jit(
        lambda a: jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct((4,), a.dtype))(a)
    )
    _error(custom, x)
    donated = jax.device_put(_array((4,)))
    call = jax.jit(lambda a: a + 1).lower(donated).compile()
    donated.delete()
    _error(call, donated)
    step = jax.jit(lambda a, i: a + i)
    for i in range(510):
        _say(f"step {i}", step(jax.device_put(_array((8,))), i))
        if i == 100:
            before = _usage()
    after = _usage()
    for _ in range(1200):
        step(jax.device_put(_array((8,))), 1)
    last = _usage()
    print("descriptors", after[0] - before[0] > 20, "threads", after[1] - before[1] > 20,
          "memory", last[2] - after[2] > 700)  # fmt: skip


if __name__ == "__main__":
    main()
