"""Installs other libraries separately, tries them, writes docs/ecosystem.md: ``nox -s ecosystem``.

The libraries of ``LIBRARIES`` go to build/ecosystem, which the child processes have on their path.
A library that is already installed, such as PyTorch, is tried too. A missing one is not tried and
keeps its lines of the page.

    python tools/ecosystem.py --suite scipy|sklearn [--backend jax.numpy] [--no-install] [FILE ...]

runs SciPy's or scikit-learn's own tests of array APIs for plugrt, or for JAX: each FILE, such as
``fft/tests``, or all in `SUITES`, in half an hour; with ``SAMPLE=20`` in the environment one in
20 of the tests. docs/generate/ecosystem.py has the figures, entered by hand.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/ecosystem"
LIBRARIES = (
    "array-api-compat", "array-api-extra", "dask", "einops", "keras", "opt-einsum", "pandas",
    "safetensors", "xarray",
)  # fmt: skip
SUITES = {
    "scipy": (
        "fft/tests", "signal/tests/test_bsplines.py",
        "signal/tests/test_fir_filter_design.py", "signal/tests/test_max_len_seq.py",
        "signal/tests/test_savitzky_golay.py", "signal/tests/test_upfirdn.py",
        "signal/tests/test_waveforms.py", "signal/tests/test_windows.py",
        "stats/tests/test_quantile.py", "stats/tests/test_rank.py", "stats/tests/test_stats.py",
        "stats/tests/test_variation.py",
    ),
    "sklearn": (
        "_loss", "decomposition/tests/test_pca.py", "linear_model/_glm",
        "linear_model/tests/test_logistic.py", "linear_model/tests/test_ridge.py",
        "metrics/cluster/tests/test_common.py", "metrics/cluster/tests/test_supervised.py",
        "metrics/tests/test_classification.py", "metrics/tests/test_common.py",
        "metrics/tests/test_pairwise.py", "mixture/tests/test_gaussian_mixture.py",
        "model_selection/tests/test_search.py", "model_selection/tests/test_split.py",
        "model_selection/tests/test_validation.py", "preprocessing/tests/test_data.py",
        "preprocessing/tests/test_label.py", "preprocessing/tests/test_polynomial.py",
        "tests/test_calibration.py", "tests/test_kernel_approximation.py",
        "tests/test_naive_bayes.py", "tests/test_pipeline.py", "utils/tests",
    ),
}  # fmt: skip
"""Files with tests of array APIs."""
_BACKENDS = {
    "scipy": ("conftest.py", (
        ("xp_known_backends = {", "'plugrt.array_api', "),
        ("if SCIPY_ARRAY_API:\n", "    import plugrt.array_api\n"
         "    xp_available_backends.append(pytest.param(plugrt.array_api, id='plugrt.array_api', "
         "marks=pytest.mark.array_api_backends))\n"),
    )),
    "sklearn": ("utils/_array_api.py", (
        ("for array_namespace in [\n", "        'plugrt.array_api', 'jax.numpy',\n"),
    )),
}  # fmt: skip
"""For each suite the file with its backends, and pairs of a text and an addition after it."""


def install(*packages: str) -> None:
    """Installs packages into the folder that the child processes have on their path."""
    command = ["-m", "pip", "install", "--quiet", "--target", str(FOLDER), *packages]
    subprocess.run([sys.executable, *command], check=True)


def run_suite(name: str, backend: str, files: Sequence[str]) -> int:
    """Adds plugrt to the backends of the tests of SciPy or scikit-learn, and runs them."""
    file, additions = _BACKENDS[name]
    path = FOLDER / name / file
    text = path.read_text()
    if "plugrt" not in text:
        for after, added in additions:
            if after not in text:
                sys.exit(f"{path} is of an unknown version: plugrt was not added to its backends")
            text = text.replace(after, after + added, 1)
        path.write_text(text)
    paths = os.pathsep.join([str(FOLDER), str(ROOT / "tools/jax_suite")])  # for sampled_tests
    enabled = f'["{backend}"]' if name == "scipy" else "1"  # scikit-learn's tests require it
    environment = os.environ | {
        "JAX_ENABLE_X64": "1", "PYTHONPATH": paths, "SCIPY_ARRAY_API": enabled,
    }  # fmt: skip
    test = ["-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-c", os.devnull]
    test += ["-p", "sampled_tests", "--rootdir", str(FOLDER / name), "-k", backend.split(".")[0]]
    test += ["-rf", *(str(FOLDER / name / file) for file in files)]
    return subprocess.run([sys.executable, *test], cwd=FOLDER, env=environment).returncode


def main(arguments: Sequence[str]) -> int:
    """Runs the tests, then the page's generator; or a suite of another library alone."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", choices=SUITES)
    parser.add_argument("--backend", default="plugrt.array_api", help="of the suite")
    parser.add_argument("--no-install", action="store_true", help="uses what is installed")
    parser.add_argument("files", nargs="*", metavar="FILE", help="of the suite")
    given = parser.parse_args(arguments)
    if given.files and not given.suite:
        parser.error("FILE is a file of a suite: name it by --suite")
    if not given.no_install:
        install(*(("scipy", "pooch", "scikit-learn") if given.suite else LIBRARIES))
    if given.suite:
        return run_suite(given.suite, given.backend, given.files or SUITES[given.suite])
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
