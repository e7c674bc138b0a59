"""Other libraries with arrays: ``nox -s ecosystem`` installs them, and writes docs/ecosystem.md."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from support.ecosystem import CALLS, FAILS, A, N

pytestmark = pytest.mark.skipif(
    os.environ.get("PLUGRT_TEST_TARGET") != "ecosystem",
    reason="needs other libraries: .venv/bin/nox -s ecosystem installs them",
)
CASES = [(library, words) for library, calls in CALLS.items() for words in calls]


def leaves(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, list | tuple) else [x]


@pytest.mark.parametrize(("library", "words"), CASES, ids=lambda x: x.replace("`", ""))
def test_call(library: str, words: str) -> None:
    lib = pytest.importorskip(library, reason=f"no {library} here")
    data = N if library == "xarray" else A
    call, x = CALLS[library][words], xp.asarray(data)
    fails = (library, words) in FAILS
    with pytest.raises(FAILS[library, words][0]) if fails else nullcontext():
        found, expected = leaves(call(lib, x)), leaves(call(lib, data))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5)


@pytest.mark.parametrize("is_read_only", [True, False])
def test_is_writeable_array(is_read_only: bool) -> None:
    compat = pytest.importorskip("array_api_compat")
    extra = pytest.importorskip("array_api_extra")
    with plugrt.config.override(read_only_arrays=is_read_only):
        x, found = xp.ones(3), []
        plugrt.jit(lambda y: (found.append(compat.is_writeable_array(y)), y)[1])(x)
        assert found == [not is_read_only] == [compat.is_writeable_array(x)]
        assert compat.is_array_api_obj(x)
        with pytest.raises(ValueError, match="read-only") if is_read_only else nullcontext():
            extra.at(x, 0).set(2.0)
        assert compat.array_namespace(x) is xp


FOUND = """
import sys
if {early}:
    import einops
from plugrt import array_api as xp
x = xp.ones((2, 3))
if not {early}:
    import einops
found = einops.rearrange(x, "a b -> b a")
assert type(found) is type(x) and found.shape == (3, 2)
import plugrt
assert plugrt.jit(lambda v: einops.reduce(v, "a b -> a", "max"))(x).shape == (2,)
assert type(einops.asnumpy(x)).__module__ == "numpy"
"""


@pytest.mark.parametrize("early", [True, False])
def test_einops_finds_the_backend_by_itself(early: bool) -> None:
    pytest.importorskip("einops", reason="no einops here")
    subprocess.run([sys.executable, "-c", FOUND.format(early=early)], check=True)
