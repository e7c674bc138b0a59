"""Programs that call LAPACK through jaxlib's handlers, as JAX lowers them for CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import PjrtError, UnknownPlatform
from support.behaviour import behaviour
from support.jax_oracle import jax

X = np.random.default_rng(21).standard_normal((4, 4)).astype(np.float32)

CHILD = """
import sys
from pathlib import Path
from typing import Any
import numpy as np
import plugrt

folder, x = Path(sys.argv[1]), np.load(sys.argv[1] + "/x.npy")
saved = folder / "saved"
if saved.exists():
    client = plugrt.get_backend("cpu")
    loaded = client.deserialize_executable(saved.read_bytes())
    buffer = client.buffer_from_host(x, client.devices()[0])
    results = [np.asarray(part[0].to_host()) for part in loaded.execute([client.shards([buffer])])]
else:
    plugrt.jit(lambda x: x + 1)(x)
    loaded = {"scipy", "jaxlib.lapack", "plugrt_cpu.lapack_lowerings"} & sys.modules.keys()
    assert not loaded, f"{loaded} for a program that does not need it"
    values = np.asarray(plugrt.array_api.linalg.eigvalsh(x + x.T))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(x + x.T), rtol=1e-4)
    from plugrt.sharding import Mesh, NamedSharding, PartitionSpec

    stack = np.stack([x + x.T] * 2)
    mesh = Mesh(np.array(plugrt.devices()[:2]), ("a",))
    divided = plugrt.device_put(stack, NamedSharding(mesh, PartitionSpec("a")))
    compiled = plugrt.jit(plugrt.array_api.linalg.eigvalsh).lower(divided).compile()
    assert "all-gather" not in compiled.as_text()
    program = plugrt.compile(folder / "program.mlir", backend="cpu")
    results = program(x)
    saved.write_bytes(program.serialize())
np.testing.assert_allclose(results[0], np.linalg.cholesky(x @ x.T + 4 * np.eye(4)), rtol=1e-5)
np.testing.assert_allclose(results[1], np.linalg.eigvalsh(x + x.T), rtol=1e-4)
print(sorted(sys.modules.keys() & {"jax", "plugrt_cpu"}))
"""


@pytest.fixture(scope="module")
def program() -> bytes:
    jnp = jax.numpy
    exported = jax.export.export(
        jax.jit(
            lambda x: (jnp.linalg.cholesky(x @ x.T + 4 * jnp.eye(4)), jnp.linalg.eigvalsh(x + x.T))
        )
    )(X)
    found: bytes = exported.mlir_module_serialized
    return found


@behaviour(
    21,
    "A program that calls LAPACK as JAX's do runs, by jaxlib's handlers, on `cpu` and on devices "
    "that call Python in the host's memory; elsewhere it is refused with the reason",
    jax="the same on its CPU client; elsewhere XLA's error alone",
)
def test_lapack_is_called(program: bytes) -> None:
    found = plugrt.compile(program)(X)
    expected = np.linalg.cholesky(X @ X.T + 4 * np.eye(4))
    np.testing.assert_allclose(np.asarray(found[0]), expected, rtol=1e-5)


def test_a_library_without_lapack_says_who_has_it(program: bytes) -> None:
    unknown = program.replace(b"lapack_s", b"lapack_q")
    assert unknown != program
    with pytest.raises(PjrtError, match=r"lapack_q\w+_ffi[\s\S]*package plugrt-cpu has") as raised:
        plugrt.compile(unknown)
    assert raised.value.__context__ is not None


def test_jax_is_not_needed_for_it(program: bytes, tmp_path: Path) -> None:
    """The process has no JAX that registers LAPACK; a saved executable is loaded as well."""
    (tmp_path / "program.mlir").write_bytes(program)
    np.save(tmp_path / "x.npy", X)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, tmp_path],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"},
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["['plugrt_cpu']"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_left_eigenvectors_and_the_other_driver_of_svd_on_numpy(dtype: str) -> None:
    try:
        plugrt.get_backend("numpy")
    except UnknownPlatform:
        pytest.skip("no numpy backend here")
    linalg = jax.lax.linalg
    x = np.random.default_rng(3).standard_normal((2, 4, 4, 2)).view(np.complex128)[..., 0]
    x = (x if dtype == "complex64" else x.real).astype(dtype)
    x[1] = np.eye(4)  # equal eigenvalues

    def f(x: Any) -> Any:
        by_qr = linalg.svd(x, full_matrices=False, algorithm=linalg.SvdAlgorithm.QR)
        return linalg.eig(x, compute_left_eigenvectors=True), by_qr

    with jax.enable_x64(dtype == "float64"):
        program = jax.jit(f).lower(x).as_text()
    assert "gesvd" in program
    found = map(np.asarray, plugrt.compile(program, backend="numpy")(x))
    values, left, right, u, s, v = found
    adjoint = left.conj().swapaxes(-1, -2)
    close = {"atol": 1e-4 if dtype != "float64" else 1e-12}
    np.testing.assert_allclose(adjoint @ x, values[..., None] * adjoint, **close)
    np.testing.assert_allclose(x @ right, right * values[..., None, :], **close)
    np.testing.assert_allclose(np.linalg.norm(left, axis=-2), 1, rtol=1e-5)
    assert np.linalg.matrix_rank(left).tolist() == [4, 4]
    np.testing.assert_allclose(u * s[..., None, :] @ v, x, **close)
