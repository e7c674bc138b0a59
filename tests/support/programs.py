"""StableHLO programs that tests compile for several backends, as JSON on stdout of children."""

from __future__ import annotations

import json
import subprocess
from typing import Any

DOT = """
module @dot {
  func.func public @main(%a: tensor<256x512xf32>, %b: tensor<512x128xf32>) -> tensor<256x128xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<256x512xf32>, tensor<512x128xf32>) -> tensor<256x128xf32>
    %1 = stablehlo.tanh %0 : tensor<256x128xf32>
    return %1 : tensor<256x128xf32>
  }
}
"""


def printed(done: subprocess.CompletedProcess[str]) -> Any:
    """Returns the JSON in the last line that a child printed; fails with its stderr otherwise."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
