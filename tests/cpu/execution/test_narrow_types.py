"""Numbers of 2 and 4 bits on CPUs, where XLA miscompiles some operations on them, or crashes.

``tools/narrow_types.py`` finds these operations, and writes ``docs/data/narrow_types``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.interface import CompileOptions, Program
from plugrt.sharding import NamedSharding, PartitionSpec
from plugrt.stablehlo.modules import bytecode, parse, portable_artifact
from plugrt_numpy import plugin
from support.behaviour import behaviour
from support.markdown import load_script

INTEGERS = ("int2", "uint2", "int4", "uint4")


def values(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    info = ml_dtypes.iinfo(getattr(ml_dtypes, dtype))
    whole = np.arange(int(info.min), int(info.max) + 1)
    return np.resize(whole, shape).astype(getattr(ml_dtypes, dtype))


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "concat": lambda x, y: xp.concat([x, y], axis=1),
    "pad": lambda x, y: lax.pad(x, y[0, 0], ((1, 2, 1), (0, 1, 0))),
    "sort": lambda x, y: xp.sort(x + y, axis=1),
    "max": lambda x, y: (xp.max(x, axis=0), xp.min(x * y, axis=1)),
    "matmul": lambda x, y: xp.matmul(x, y.T),
    "shifts": lambda x, y: (x << (y & 1), x >> (y & 1)),
    "arithmetic": lambda x, y: (x * y + x - ~y, abs(x + 1), -x, x == y, x < y),
    "population count": lambda x, y: (lax.population_count(x), lax.clz(x)),
    "loop": lambda x, y: lax.fori_loop(0, 3, lambda i, c: xp.concat([c[1:], c[:1]]) + y, x),
    "branch": lambda x, y: lax.cond(
        x[0, 0] == y[0, 0], lambda: xp.concat([x, y]), lambda: xp.concat([y, y])
    ),
    "inner function": lambda x, y: plugrt.jit(lambda a, b: xp.concat([a, b]) + 1)(x, y),
    "conversions": lambda x, y: (xp.concat([x, y]).astype("int32"), (x + y).astype("float32")),
}


def expected(call: Callable[[Any, Any], Any], *arguments: Any) -> Any:
    """Returns the NumPy backend's result of the same program."""
    client = plugin.create_client({})
    compiled = plugrt.jit(call).lower(*arguments)
    code = Program(compiled.as_text().encode())
    loaded = client.compile(code, CompileOptions())
    put = [client.shards([client.buffer_from_host(x, client.devices()[0])]) for x in arguments]
    return [part[0].to_host() for part in loaded.execute(put)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_operations_on_narrow_integers_are_right(dtype: str) -> None:
    """Earlier, `xp.concat([x, x])` of int2 ended the process."""
    x, y = values(dtype, 3, 7), values(dtype, 7, 3).reshape(3, 7)[::-1].copy()

    def everything(x: Any, y: Any) -> Any:
        return [call(x, y) for call in CALLS.values()]

    found = plugrt.tree.leaves(plugrt.jit(everything)(x, y))
    for number, (a, b) in enumerate(zip(found, expected(everything, x, y), strict=True)):
        np.testing.assert_array_equal(np.asarray(a), b, err_msg=str(number))
    eager = xp.concat([plugrt.device_put(x), plugrt.device_put(y)])
    np.testing.assert_array_equal(np.asarray(eager), np.concatenate([x, y]))


JOIN = """func.func public @main(%x: tensor<3xi2>) -> tensor<6xi2> {
  %0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<3xi2>, tensor<3xi2>) -> tensor<6xi2>
  return %0 : tensor<6xi2>
}"""


@pytest.mark.parametrize("form", ["text", "bytecode", "artifact"])
def test_programs_from_elsewhere_are_computed_the_same_way(form: str) -> None:
    module = parse(JOIN)
    code = {"text": JOIN.encode(), "bytecode": bytecode(module),
            "artifact": portable_artifact(module)}[form]  # fmt: skip
    x = values("int2", 3)
    found = plugrt.compile(code)(x)
    np.testing.assert_array_equal(np.asarray(found), np.concatenate([x, x]))


def test_float4_becomes_an_integer_by_its_value() -> None:
    """XLA treats 6, the largest float4, as out of range, and returns the largest int32."""
    x = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn)
    for dtype in ("int4", "uint8", "int32"):
        kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
        found = plugrt.jit(lambda x, kind=kind: x.astype(kind))(x)
        wanted = np.maximum(x.astype("f4"), 0 if dtype[0] == "u" else -8).astype(kind)
        np.testing.assert_array_equal(np.asarray(found), wanted)


WHOLE = values("int2", 8, 4)


@behaviour(
    108,
    "int2 and uint2 are gathered, which XLA does wrongly on CPUs, as int8 there",
    jax="returns other values, or the process ends",
)
def test_a_gather_of_two_bit_integers_is_right() -> None:
    """Differs from JAX: int2 gathered on CPUs | wrong values, or a crash | right."""
    if plugrt.local_device_count() < 4:
        pytest.skip("no 4 devices here")
    mesh = plugrt.make_mesh((4,), ("x",))
    rows, columns, whole = (
        NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("x",), (None, "x"), ())
    )
    x = plugrt.device_put(WHOLE, rows)
    gather = plugrt.shard_map(
        lambda v: lax.all_gather(v, "x", tiled=True),
        mesh=mesh, in_specs=rows.spec, out_specs=whole.spec, check_vma=False,
    )  # fmt: skip
    total = plugrt.shard_map(
        lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=rows.spec, out_specs=whole.spec
    )
    for name, call, wanted in (
        ("by the compiler", plugrt.jit(lambda v: v, out_shardings=whole), WHOLE),
        ("to columns", plugrt.jit(lambda v: v + v, out_shardings=columns), WHOLE + WHOLE),
        ("by shard_map", plugrt.jit(gather), WHOLE),
        ("a sum", plugrt.jit(total), WHOLE.reshape(4, 2, 4).astype("i4").sum(0)),
    ):
        for _ in range(3):
            found = np.asarray(call(x))
            np.testing.assert_array_equal(found, wanted.astype(WHOLE.dtype), err_msg=name)
    np.testing.assert_array_equal(np.asarray(plugrt.device_put(x, whole)), WHOLE)


def test_the_faults_are_those_that_were_tried() -> None:
    script = load_script("docs/generate/narrow_faults.py")
    assert script.PLACE.read_text(encoding="utf-8") == script.text()
