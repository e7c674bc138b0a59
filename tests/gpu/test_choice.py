"""The backend that a machine with a GPU chooses, and its messages, in child processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.distributions import run_cli, run_python
from support.programs import DOT, printed


def test_the_gpu_is_the_default() -> None:
    done = run_python(
        """
        import json, plugrt
        device = plugrt.devices()[0]
        row = next(r for r in plugrt.plugins.table() if r.name == "cuda")
        print(json.dumps([plugrt.default_backend(), row.state, device.platform, device.kind]))
        """
    )
    name, state, platform, kind = printed(done)
    assert (name, state, platform) == ("cuda", "initialised", "cuda")
    assert kind.startswith("NVIDIA")


@pytest.mark.parametrize("name", ["cuda", "gpu"])
def test_it_is_chosen_by_name(name: str) -> None:
    done = run_python("import plugrt; print(plugrt.default_backend())", JAX_PLATFORMS=name)
    assert done.stdout.split() == ["cuda"], done.stderr


def test_cpu_beside_it() -> None:
    done = run_python(
        """
        import json, numpy as np, plugrt
        x = plugrt.device_put(np.arange(4.0, dtype=np.float32), plugrt.devices("cpu")[0])
        y = plugrt.device_put(x, plugrt.devices("cuda")[0])
        back = plugrt.device_put(y + 1, plugrt.devices("cpu")[0])
        print(json.dumps([y.device.platform, back.device.platform, (back + x).tolist()]))
        """
    )
    assert printed(done) == ["cuda", "cpu", [1, 3, 5, 7]]


def test_a_program_of_a_file_runs(tmp_path: Path) -> None:
    (tmp_path / "dot.mlir").write_text(DOT)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape).astype(np.float32) for shape in ((256, 512), (512, 128))]
    words = []
    for i, array in enumerate(given):
        np.save(tmp_path / f"{i}.npy", array)
        words += ["--input", str(tmp_path / f"{i}.npy")]
    file, out = str(tmp_path / "dot.mlir"), str(tmp_path)
    done = run_cli("run", file, *words, "--output-dir", out, "--json", JAX_PLATFORMS="cuda")
    assert done.returncode == 0, done.stderr
    # A product of matrices uses TF32 by default.
    expected = np.tanh(given[0] @ given[1])
    np.testing.assert_allclose(np.load(tmp_path / "output_0.npy"), expected, atol=0.1)


def test_a_process_ends_well_with_work_under_way() -> None:
    done = run_python(
        """
        import numpy as np, plugrt
        from plugrt import lax
        x = plugrt.device_put(np.ones((2048, 2048), np.float32))
        f = plugrt.jit(lambda x: lax.fori_loop(0, 1000, lambda i, y: y @ x / 2048, x))
        y = f(x)
        print(y.is_ready())
        """,
        JAX_PLATFORMS="cuda",
    )
    assert done.returncode == 0, done.stderr
