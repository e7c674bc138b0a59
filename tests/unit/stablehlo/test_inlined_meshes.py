"""`inline_meshes`: shardings of a module with meshes inlined, and the parsed shardings."""

from __future__ import annotations

import pytest

from plugrt.errors import Unimplemented
from plugrt.stablehlo.inlined_meshes import inline_meshes
from plugrt.stablehlo.modules import parse

TEXT = """
module {
  sdy.mesh @mesh = <["x"=2, "y"=3]>
  sdy.mesh @other = <["z"=6], device_ids=[5, 4, 3, 2, 1, 0]>
  func.func public @main(%a: tensor<6x6xf32>, %b: tensor<6x6xf32>, %c: tensor<6x6xf32>,
      %d: tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}, %e: tensor<6x6xf32>)
      -> (tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>,
          tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
    %0:2 = call @f(%a, %b) : (tensor<6x6xf32>, tensor<6x6xf32>)
      -> (tensor<6x6xf32>, tensor<6x6xf32>)
    %1 = sdy.manual_computation(%c) in_shardings=[<@mesh, [{"y", "x"}, {}]>]
        out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} (%p: tensor<1x6xf32>) {
      %3 = stablehlo.slice %p [0:1, 0:2] : (tensor<1x6xf32>) -> tensor<1x2xf32>
      %4 = stablehlo.concatenate %3, %3, %3, dim = 0
        : (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
      sdy.return %4 : tensor<3x2xf32>
    } : (tensor<6x6xf32>) -> tensor<6x6xf32>
    %2 = sdy.sharding_constraint %e <@other, [{"z"}, {}]> : tensor<6x6xf32>
    %5 = stablehlo.add %2, %d {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>]>}
      : tensor<6x6xf32>
    return %0#0, %0#1, %1, %5 : tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>
  }
  func.func private @f(%a: tensor<6x6xf32>, %b: tensor<6x6xf32>)
      -> (tensor<6x6xf32>, tensor<6x6xf32>) {
    %0 = sdy.sharding_constraint %a <@mesh, [{}, {"x"}]> : tensor<6x6xf32>
    %1 = sdy.sharding_constraint %b <@mesh, [{"y"}, {?}]> : tensor<6x6xf32>
    return %1, %0 : tensor<6x6xf32>, tensor<6x6xf32>
  }
}
"""


def test_meshes_are_in_place_and_shardings_are_read() -> None:
    found = inline_meshes(TEXT.encode(), "f")
    assert found is not None
    assert dict(found.axes) == {"x": 2, "y": 3}
    # An open dimension, and a mesh other than the first one, have no meaning.
    assert [*found.arguments] == [((), ("x",)), None, (("y", "x"), ()), (("y",), ()), None]
    assert [*found.results] == [None, ((), ("x",)), (("x",), ("y",)), ((), ("x",))]
    text = str(parse(found.code))
    assert "@mesh" not in text
    assert "@other" not in text
    assert text.count('<["x"=2, "y"=3]>') == 5
    assert 'mesh<["z"=6], device_ids=[5, 4, 3, 2, 1, 0]>, [{"z"}, {}]' in text
    assert "sdy.sharding = #sdy.sharding<" not in text


def test_a_parameter_that_is_used_in_two_ways_says_nothing() -> None:
    used = TEXT.replace("stablehlo.add %2, %d", "stablehlo.add %2, %c")
    found = inline_meshes(used.encode(), "f")
    assert found is not None
    assert found.arguments[2] is None


def test_one_device_is_no_mesh() -> None:
    one = TEXT.replace('"x"=2, "y"=3', '"x"=1, "y"=1').replace('"z"=6', '"z"=1')
    one = one.replace(", device_ids=[5, 4, 3, 2, 1, 0]", "").replace("tensor<1x6", "tensor<6x6")
    one = one.replace("[0:1, 0:2]", "[0:6, 0:2]").replace("1x2xf32", "6x2xf32")
    one = one.replace("dim = 0", "dim = 1").replace("3x2xf32", "6x6xf32")
    assert inline_meshes(one.encode(), "f") is None
    assert inline_meshes(b"module {}", "f") is None


def test_meshes_of_different_numbers_of_devices_are_refused() -> None:
    mixed = TEXT.replace('"z"=6], device_ids=[5, 4, 3, 2, 1, 0]', '"z"=3]')
    with pytest.raises(Unimplemented, match="'f' is over meshes of 3 and of 6 devices"):
        inline_meshes(mixed.encode(), "f")
