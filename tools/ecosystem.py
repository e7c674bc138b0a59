"""Installs other libraries separately, tries them, writes docs/ecosystem.md: ``nox -s ecosystem``.

The libraries of ``LIBRARIES`` go to build/ecosystem, which the child processes have on their path.
A library that is already installed, such as PyTorch, is tried too. A missing one is not tried and
keeps its lines of the page.

    python tools/ecosystem.py --scipy [--backend=jax.numpy] [FILE ...]

runs SciPy's own tests of array APIs for plugrt, or for JAX: each FILE, such as ``fft/tests``, or
`SCIPY`, in half an hour; with ``SAMPLE=20`` in the environment one in 20 of the tests.
docs/generate/ecosystem.py has the figures, entered by hand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/ecosystem"
LIBRARIES = (
    "array-api-compat", "array-api-extra", "dask", "einops", "keras", "opt-einsum", "pandas",
    "safetensors", "xarray",
)  # fmt: skip
SCIPY = (
    "fft/tests", "signal/tests/test_bsplines.py",
    "signal/tests/test_fir_filter_design.py", "signal/tests/test_max_len_seq.py",
    "signal/tests/test_savitzky_golay.py", "signal/tests/test_upfirdn.py",
    "signal/tests/test_waveforms.py", "signal/tests/test_windows.py",
    "stats/tests/test_quantile.py", "stats/tests/test_rank.py", "stats/tests/test_stats.py",
    "stats/tests/test_variation.py",
)  # fmt: skip
_KNOWN, _ADDED = "xp_known_backends = {", "if SCIPY_ARRAY_API:\n"


def run_scipy(arguments: list[str]) -> int:
    """Installs SciPy, adds plugrt to the backends of its tests, and runs the tests."""
    options = [a for a in arguments if a.startswith("--")]
    files = [a for a in arguments if not a.startswith("--")] or [*SCIPY]
    backend = next((a.partition("=")[2] for a in options if "=" in a), "plugrt.array_api")
    scipy = FOLDER / "scipy"
    if "--no-install" not in options:
        command = ["-m", "pip", "install", "--quiet", "--target", str(FOLDER), "scipy", "pooch"]
        subprocess.run([sys.executable, *command], check=True)
    conftest = scipy / "conftest.py"
    text = conftest.read_text()
    if "plugrt" not in text:
        if _KNOWN not in text or _ADDED not in text:
            sys.exit(f"{conftest} is another than that of SciPy 1.17: plugrt was not added")
        added = (
            f"{_ADDED}    import plugrt.array_api\n    xp_available_backends.append(pytest.param("
            "plugrt.array_api, id='plugrt.array_api', marks=pytest.mark.array_api_backends))\n"
        )
        text = text.replace(_KNOWN, f"{_KNOWN}'plugrt.array_api', ", 1).replace(_ADDED, added, 1)
        conftest.write_text(text)
    path = os.pathsep.join([str(FOLDER), str(ROOT / "tools/jax_suite")])  # for sampled_tests
    environment = os.environ | {
        "JAX_ENABLE_X64": "1", "PYTHONPATH": path,
        "SCIPY_ARRAY_API": f'["{backend}"]',
    }  # fmt: skip
    test = ["-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-c", os.devnull]
    test += ["-p", "sampled_tests", "--rootdir", str(scipy), "-k", backend.partition(".")[0]]
    test += [str(scipy / name) for name in files]
    return subprocess.run([sys.executable, *test], cwd=FOLDER, env=environment).returncode


def main(arguments: list[str]) -> int:
    """Runs the tests, then the page's generator; ``--no-install`` uses what is there."""
    if "--scipy" in arguments:
        return run_scipy(arguments)
    if "--no-install" not in arguments:
        command = ["-m", "pip", "install", "--quiet", "--target", str(FOLDER), *LIBRARIES]
        subprocess.run([sys.executable, *command], check=True)
    path = os.pathsep.join([str(ROOT / "tests"), str(FOLDER), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {
        "KERAS_BACKEND": "numpy", "PLUGRT_TEST_TARGET": "ecosystem", "PYTHONPATH": path,
    }  # fmt: skip
    test = ["-m", "pytest", "-q", "tests/vendors/test_ecosystem.py"]
    status = subprocess.run([sys.executable, *test], cwd=ROOT, env=environment).returncode
    page = [sys.executable, "docs/generate/ecosystem.py"]
    subprocess.run(page, cwd=ROOT, env=environment, check=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
