"""CHLO of constants on XLA's library, which folds comparisons without a type wrongly."""

from __future__ import annotations

import numpy as np
import pytest

from plugrt.interface import Client, CompileOptions, Program
from plugrt.programs.parsing import convert_for_client
from support.xla_cpu import needs_library

pytestmark = needs_library


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["i", "ui"])
def test_the_high_half_of_a_product_of_constants(client: Client, sign: str, bits: int) -> None:
    dtype = np.dtype(f"{sign}nt{bits}")
    info = np.iinfo(dtype)
    edges = [info.min, info.min + 1, 0, 1, 3, info.max // 2, info.max]
    edges += np.random.default_rng(0).integers(info.min, info.max, 5, dtype).tolist()
    x, y = [a for a in edges for _ in edges], edges * len(edges)
    kind = f"tensor<{len(x)}x{sign}{bits}>"
    text = f"""func.func public @main() -> {kind} {{
      %x = stablehlo.constant dense<{x}> : {kind}
      %y = stablehlo.constant dense<{y}> : {kind}
      %0 = chlo.mulhi %x, %y : {kind}, {kind} -> {kind}
      return %0 : {kind}
    }}"""
    program = convert_for_client(Program(text.encode()), client)
    [[found]] = client.compile(program, CompileOptions()).execute([])
    wanted = [a * b >> bits for a, b in zip(x, y, strict=True)]
    assert found.to_host().tolist() == wanted
