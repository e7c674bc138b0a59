"""Without jaxlib arrays work, and the first operator's error names the package to install."""

from __future__ import annotations

import subprocess
import sys

_THIN = """
import sys

class NoJaxlib:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jaxlib", "jax"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoJaxlib())
import numpy as np
from plugrt.errors import MissingTraceExtra
from plugrt.execution.arrays.array import new_array
from plugrt.execution.arrays.aval import intern_aval

x = new_array((), intern_aval((2,), np.dtype(np.float32), None, False))
assert "jaxlib" not in sys.modules and "plugrt.array_api" not in sys.modules
uses = ["x + x", "2 * x", "-x", "x == x", "x.sum()", "x.T", "x[0]", "x.__array_namespace__()"]
for use in uses + uses:  # the same again, and not what a half-done import leaves
    try:
        eval(use)
    except MissingTraceExtra as error:
        assert 'pip install "plugrt[trace]"' in str(error), error
    else:
        raise AssertionError(use)
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_first_use_of_an_operator_names_the_extra() -> None:
    run(_THIN)


def test_arrays_do_not_need_the_operations() -> None:
    run(
        "import sys; from plugrt.execution.arrays.array import Array; "
        "assert 'plugrt.array_api.operators' not in sys.modules; "
        "assert not [m for m in sys.modules if m.startswith('jaxlib')]; "
        "Array.__add__; import plugrt.array_api.operators; "
        "assert Array.__add__.__module__ == 'plugrt.array_api.operators'"
    )
