"""`from_jax`: JAX lowers for the platform that a call runs on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import Unimplemented
from support.jax_oracle import jax
from support.xla_cpu import needs_library

X = np.float32([1, 2])


@needs_library
def test_each_platform_has_a_program_of_its_own() -> None:
    traced = []

    def f(x: Any) -> Any:
        traced.append(x)
        there = jax.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x + 2)
        return there, jax.numpy.linalg.cholesky(jax.numpy.diag(x))

    cpu, library = (plugrt.get_backend(name) for name in ("cpu", "xla_cpu"))
    ours = plugrt.from_jax(f)
    for _ in range(2):  # JAX's cpu is jaxlib's client, with LAPACK; others get portable programs
        for client, plus, target in ((cpu, 1, True), (library, 2, False)):
            x = plugrt.device_put(X, client.addressable_devices()[0])
            there, factor = ours(x)
            assert there.device.client is client
            assert there.tolist() == (X + plus).tolist()
            np.testing.assert_allclose(factor, np.diag(np.sqrt(X)), rtol=1e-6)
            assert ("lapack_" in ours.lower(x).as_text()) is target
    assert plugrt.from_jax(f, backend="xla_cpu")(X)[0].tolist() == (X + 2).tolist()
    assert plugrt.from_jax(f, device=cpu.addressable_devices()[0])(X)[0].tolist() == [2, 3]
    with pytest.raises(Unimplemented, match=r"for the platform 'xla_cpu'.*'eigh'"):
        plugrt.from_jax(jax.numpy.linalg.eigvalsh, backend="xla_cpu")(np.eye(2, dtype=np.float32))
    with pytest.raises(Unimplemented, match="'<lambda>' calls Python"):
        plugrt.from_jax(lambda x: jax.debug.print("{}", x), backend="xla_cpu")(X)
