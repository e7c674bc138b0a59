"""Callbacks of JAX's CPU client, by index, are refused: without its functions jaxlib crashes."""

from __future__ import annotations

import pytest

import plugrt
from plugrt.errors import Unimplemented
from support.requirements import needs_jax


@pytest.mark.parametrize("form", ["text", "bytes", "hlo"])
@needs_jax
def test_a_lowered_callback_of_jax_is_refused(form: str) -> None:
    import jax
    import numpy as np

    kind = jax.ShapeDtypeStruct((3,), "float32")
    lowered = jax.jit(lambda x: jax.pure_callback(np.sin, kind, x)).lower(np.ones(3, "f4"))
    if form == "hlo":
        program = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    else:
        program = lowered.as_text() if form == "text" else lowered.as_text().encode()
    with pytest.raises(Unimplemented, match=r"by an index that JAX's own CPU client has"):
        plugrt.compile(program)
