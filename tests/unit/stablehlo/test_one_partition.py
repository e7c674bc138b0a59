"""`drop_shardings`: removes Shardy's annotations from a module for one partition."""

from __future__ import annotations

import pytest

from plugrt.errors import Unimplemented
from plugrt.stablehlo.inlined_meshes import drop_shardings
from plugrt.stablehlo.modules import parse

TEXT = """
module {{
  sdy.mesh @mesh = <["x"={count}]>
  func.func public @main(%x: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}})
      -> (tensor<4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) {{
    %0 = sdy.sharding_constraint %x <@mesh, [{{"x"}}]> : tensor<4xf32>
    %1 = stablehlo.negate %0 {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}]>]>}}
      : tensor<4xf32>
    {more}
    return %1 : tensor<4xf32>
  }}
}}
"""


def test_nothing_of_shardy_is_left() -> None:
    code = drop_shardings(TEXT.format(count=1, more="").encode(), "f")
    assert b"sdy" not in code
    assert "stablehlo.negate %arg0" in str(parse(code))
    assert drop_shardings(code, "f") is code


def test_other_operations_of_shardy_are_refused() -> None:
    more = "sdy.sharding_group %1 group_id=0 : tensor<4xf32>"
    with pytest.raises(Unimplemented, match=r"'f' has sdy\.sharding_group"):
        drop_shardings(TEXT.format(count=1, more=more).encode(), "f")
