"""Compiled functions over a mesh: accepted and refused arguments, and shardings of results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import devices, monitoring
from plugrt.errors import ArgumentMismatch, DeviceMismatch, ShapeError
from plugrt.sharding import GSPMDSharding, Mesh, NamedSharding, PmapSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.compiles import counting

A = np.arange(64, dtype=np.float32).reshape(8, 8)


def over(*entries: Any) -> NamedSharding:
    return NamedSharding(plugrt.make_mesh((4, 2), ("x", "y")), P(*entries))


def as_tiles(sharding: NamedSharding) -> GSPMDSharding:
    return GSPMDSharding.from_tiling(sharding.devices, sharding.tiling(2))


@behaviour(
    111,
    "a compiled function accepts arrays with its shardings, and uncommitted arrays; five that "
    "differ are named, with "
    "both shardings",
)
def test_shardings_are_checked_at_the_call() -> None:
    total = plugrt.jit(lambda *arrays: sum(arrays), in_shardings=over("x"))
    compiled = total.lower(*[A] * 7).compile()
    alike = [over("x"), over("x", None), as_tiles(over("x"))]
    given = [plugrt.device_put(A, sharding) for sharding in alike]
    with counting() as counts:
        found = compiled(*given, A, plugrt.device_put(A), given[0], A)
    assert counts[monitoring.COMPILE] == 0
    np.testing.assert_array_equal(found, 7 * A)
    turned = NamedSharding(Mesh(devices()[7::-1], "x"), P("x"))
    elsewhere = plugrt.sharding.SingleDeviceSharding(devices()[3])
    for sharding in (over("y"), over(), turned, elsewhere, PmapSharding(devices()[:8])):
        wrong = plugrt.device_put(A, sharding)
        with pytest.raises(ArgumentMismatch) as caught:
            compiled(*[wrong] * 6, given[0])
        head, *lines, rest = str(caught.value).splitlines()
        assert head.endswith("device_put them to its input_shardings:")
        assert (len(lines), rest) == (5, "  and 1 more")
        for i, line in enumerate(lines):
            assert f"args[{i}]: on {sharding!r}" in line
            assert f"; taken in {over('x')!r}" in line
        ours = compiled.input_shardings[0]
        moved = plugrt.device_put((wrong,) * 7, ours)
        np.testing.assert_array_equal(compiled(*moved), 7 * A)


def test_the_same_mesh_over_other_devices_is_told_by_their_ids() -> None:
    compiled = plugrt.jit(lambda v: v + 1, in_shardings=over("x")).lower(A).compile()
    mesh = over("x").mesh
    assert isinstance(mesh, Mesh)
    turned = NamedSharding(Mesh(mesh.devices[::-1], mesh.axis_names), P("x"))
    said = r"over the devices \[\d, .*\]; taken in the same over \[0, 1, 2, 3, 4, 5, 6, 7\]$"
    with pytest.raises(ArgumentMismatch, match=said):
        compiled(plugrt.device_put(A, turned))


@behaviour(111, "results have the shardings that the user gave, and not others that divide alike")
def test_results_keep_the_shardings_of_the_user() -> None:
    x = plugrt.device_put(A, over("x"))
    line = NamedSharding(Mesh(devices()[:8], "z"), P("z"))
    tiles = as_tiles(line)
    double, same = (lambda v: v * 2), (lambda v: v)
    for asked in (tiles, line, over(("x", "y")), over(("x", "y"), None)):
        for function, expected in ((double, 2 * A), (same, A)):
            f = plugrt.jit(function, out_shardings=asked)
            compiled = f.lower(x).compile()
            assert compiled.output_shardings is asked
            for result in (f(x), compiled(x)):
                assert (type(result.sharding), result.sharding) == (type(asked), asked)
                np.testing.assert_array_equal(result, expected)
    given = plugrt.jit(double, in_shardings=line).lower(A).compile()
    assert given.input_shardings[0][0] is line
    # One call's result is the next one's argument, with an equal sharding.
    f = plugrt.jit(lambda v: v + 1, in_shardings=line, out_shardings=line)
    assert f(f(A)).sharding == line


@pytest.mark.parametrize("spec", [(), ("x",), (None, "x"), ("y", "x"), (("x", "y"),)])
def test_a_struct_is_compiled_for_as_an_array_is(spec: tuple[Any, ...]) -> None:
    x = plugrt.device_put(A, over(*spec))
    struct = plugrt.ShapeDtypeStruct(A.shape, A.dtype, sharding=over(*spec))
    f = plugrt.jit(lambda a, b: a + b)
    by_array, by_struct = f.lower(x, A), f.lower(struct, A)
    assert by_array.as_text() == by_struct.as_text()
    compiled = by_struct.compile()
    assert compiled.input_shardings == by_array.compile().input_shardings
    np.testing.assert_array_equal(compiled(x, A), 2 * A)
    with pytest.raises(ArgumentMismatch):
        compiled(plugrt.device_put(A, devices()[1]), A)
    with pytest.raises(ShapeError, match="argument a"):
        f.lower(plugrt.ShapeDtypeStruct((3, 3), A.dtype, sharding=over("x", "y")), A)


def test_structs_that_are_elsewhere_are_refused_as_arrays_are() -> None:
    two = NamedSharding(Mesh(devices()[:2], "x"), P("x"))
    arrays = [plugrt.device_put(A, over("x")), plugrt.device_put(A, two)]
    structs = [plugrt.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding) for x in arrays]
    for given in (arrays, structs):
        with pytest.raises(DeviceMismatch, match="argument b"):
            plugrt.jit(lambda a, b: a + b).lower(*given).compile()
