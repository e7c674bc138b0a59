"""Shardings of programs, beside JAX's `xla.OpSharding` of the same shardings."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from plugrt.errors import ProgramError, Unimplemented
from plugrt.stablehlo.entry_shardings import main_shardings
from plugrt.stablehlo.modules import parse
from plugrt.stablehlo.shardings import read_gspmd, read_shardy
from plugrt.wire.hlo_proto import WHOLE, write_tiles
from plugrt_cpu.jaxlib_import import import_jaxlib
from support.requirements import needs_jax

try:
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
except ImportError:
    pass

SHAPE = (8, 8)


def hlo_sharding(serialised: bytes) -> Any:
    _, hlo = import_jaxlib()
    read = hlo.OpSharding()
    read.ParseFromString(serialised)
    return hlo.HloSharding.from_proto(read)


def program(mesh: str, sharding: str) -> str:
    return f"""module {{ sdy.mesh @mesh = <{mesh}>
func.func public @main(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}})
    -> tensor<8x8xf32> {{ return %a : tensor<8x8xf32> }} }}"""


def slices_of(text: str, devices: int) -> list[tuple[slice, ...]]:
    module = parse(text)
    mesh, main = module.body.operations
    [attributes] = main.attributes["arg_attrs"]
    return read_shardy(attributes["sdy.sharding"], {"mesh": mesh}).slices(SHAPE, devices)


@needs_jax
@pytest.mark.parametrize("shape", [(8,), (2, 4), (4, 2), (2, 2, 2), (1, 8)], ids=str)
def test_shardings_of_a_program_are_those_that_jax_stated(shape: tuple[int, ...]) -> None:
    names = "xyz"[: len(shape)]
    mesh = Mesh(np.array(jax.devices("cpu")[:8]).reshape(shape), tuple(names))
    specs = [PartitionSpec(order[:k] or None, order[k:n] or None)
             for order in itertools.permutations(names) for n in range(len(names) + 1)
             for k in range(n + 1)]  # fmt: skip
    for spec in specs:
        stated = NamedSharding(mesh, spec)
        lowered = jax.jit(lambda x: x * 2, in_shardings=stated, out_shardings=stated)
        text = lowered.lower(jax.ShapeDtypeStruct(SHAPE, np.float32)).as_text()
        found = main_shardings(parse(text))
        assert found is not None
        for [sharding] in found:
            assert hlo_sharding(sharding) == stated._to_xla_hlo_sharding(2), spec


def written(axes: Sequence[str]) -> str:
    """Returns axes in Shardy's notation: a and b are the halves of x, and c is y."""
    halves = {"a": '"x":(1)2', "b": '"x":(2)2', "c": '"y"'}
    return ", ".join(halves[n] for n in axes).replace('"x":(1)2, "x":(2)2', '"x"')


@needs_jax
@pytest.mark.parametrize("seed", range(12))
def test_parts_of_axes_and_renumbered_devices_are_as_in_jax_with_axes_of_their_own(
    seed: int,
) -> None:
    choice = random.Random(seed)
    order = choice.sample("abc", choice.randint(1, 3))
    split = choice.randint(0, len(order))
    ids = choice.sample(range(8), 8)
    devices = jax.devices("cpu")
    mesh = Mesh(np.array([devices[i] for i in ids]).reshape(2, 2, 2), ("a", "b", "c"))
    first, second = order[:split], order[split:]
    stated = NamedSharding(mesh, PartitionSpec(tuple(first) or None, tuple(second) or None))
    text = program(
        f'["x"=4, "y"=2], device_ids={ids}', f"[{{{written(first)}}}, {{{written(second)}}}]"
    )
    found = main_shardings(parse(text))
    assert found is not None
    [argument], [result] = found
    # JAX's numbers are a device's position in the mesh, not its id.
    ours, theirs = hlo_sharding(argument), stated._to_xla_hlo_sharding(2)
    assert ours.tile_assignment_dimensions() == theirs.tile_assignment_dimensions(), text
    assert ours.replicate_on_last_tile_dim() == theirs.replicate_on_last_tile_dim(), text
    if not theirs.is_replicated():
        copies = ours.tile_assignment_dimensions()[-1] if ours.replicate_on_last_tile_dim() else 1
        tiles = np.reshape(ours.tile_assignment_devices(), (-1, copies))
        expected = np.take(ids, theirs.tile_assignment_devices()).reshape(-1, copies)
        np.testing.assert_array_equal(np.sort(tiles), np.sort(expected), text)  # copies: any order
    assert result == WHOLE
    where = stated.devices_indices_map(SHAPE)
    whole = np.empty(SHAPE)
    for device, part in enumerate(slices_of(text, 8)):
        assert whole[part].shape == whole[where[devices[device]]].shape
        assert whole[part].ctypes.data == whole[where[devices[device]]].ctypes.data, text


@pytest.mark.parametrize(("mesh", "axes"), [("[]", "[{}, {}]"), ("[], device_ids=[5]", "[]")])
def test_arrays_on_one_device_or_on_any_are_whole(mesh: str, axes: str) -> None:
    assert main_shardings(parse(program(mesh, axes))) == ([WHOLE], [WHOLE])


def test_a_program_without_a_mesh_states_no_shardings() -> None:
    text = (
        "func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"
    )
    assert main_shardings(parse(text)) is None


@pytest.mark.parametrize(
    ("mesh", "axes"),
    [('["x"=4]', '[{"x"}, {}]'), ('["x"=1]', '[{"x"}, {}]'), ("[], device_ids=[5]", "[]")],
)
def test_a_mesh_of_other_devices_than_the_program_has_is_refused(mesh: str, axes: str) -> None:
    with pytest.raises(ProgramError, match="compiled for 2 partitions"):
        slices_of(program(mesh, axes), 2)


GSPMD = {
    "{devices=[2]<=[2]}": [(0, 4), (4, 8)],
    "{devices=[2]1,0}": [(4, 8), (0, 4)],
    "{devices=[2,1]<=[2]}": [(0, 4), (4, 8)],
    "{devices=[1,2]<=[2] last_tile_dim_replicate}": [(0, 8), (0, 8)],
    "{devices=[1,2]<=[2] last_tile_dims={replicated}}": [(0, 8), (0, 8)],
    "{replicated}": [(0, 8), (0, 8)],
}


@pytest.mark.parametrize("text", GSPMD)
def test_gspmd_shardings_are_parsed(text: str) -> None:
    found = [(s.start, s.stop) for [s] in read_gspmd(text, 2).slices((8,), 2)]
    assert found == GSPMD[text]


@pytest.mark.parametrize(
    "text",
    [
        "{devices=[4]<=[4]}", "{devices=[2]<=[3]}", "{devices=[2]0,5}", "{devices=[2]0}",
        "{devices=[2]0,0}", "{devices=[0]<=[0]}", "{devices=[2]<=[2]T(3)}",
        "{devices=[2]<=[2]T(0,0)}", "{devices=[2]<=[999999999999999]}",
    ],
)  # fmt: skip
def test_tiles_over_other_devices_are_refused(text: str) -> None:
    with pytest.raises(ProgramError, match="not over the program's 2 partitions"):
        read_gspmd(text, 2)


@pytest.mark.parametrize(
    "text",
    [
        "", "xx", "{manual}", "{maximal device=0}", "{devices=[,]<=[,]}", "devices=[2]<=[2]",
        "{{devices=[2]<=[2]}, {replicated}}", "{devices=[1,2]<=[2] last_tile_dims={manual}}",
    ],
)  # fmt: skip
def test_other_shardings_are_refused(text: str) -> None:
    with pytest.raises(Unimplemented, match="neither of tiles nor replicated"):
        read_gspmd(text, 2)


def test_shardings_in_gspmds_form_and_with_meshes_in_place() -> None:
    text = """module attributes {mhlo.num_partitions = 4 : i32} {
      func.func public @main(
          %a: tensor<4x8xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"},
          %b: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2, "y"=2]>, [{"x"}, {}]>},
          %c: tensor<f32> {mhlo.sharding = "{replicated}"})
          -> (tensor<4x8xf32> {mhlo.sharding = "{devices=[2,2]1,0,3,2}"}) {
        return %a : tensor<4x8xf32>
      }
    }"""
    found = main_shardings(parse(text))
    rows = write_tiles([2, 1], [0, 1, 2, 3])
    assert found == ([rows, rows, WHOLE], [write_tiles([2, 2], [1, 0, 3, 2])])
