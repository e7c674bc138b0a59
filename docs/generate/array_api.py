"""Makes the chapter of docs/coverage.md on the array API from tools/array_api_failures.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REASONS = ROOT / "tools/array_api_failures.toml"
HEAD = """\
# The array API standard's tests

`plugrt.array_api` is held to [array-api-tests](https://github.com/data-apis/array-api-tests), the
suite of the Python array API standard, extensions `linalg` and `fft` included.
`.venv/bin/nox -s array_api` runs it on a checkout that `ARRAY_API_TESTS` names, on the backends
cpu and numpy, with 64-bit dtypes and 5 random examples a test (four minutes). It fails where a test
fails that `tools/array_api_failures.toml` does not name, and where one passes that the file names.

{run}

| why tests fail | tests | backends | `jax.numpy` |
| --- | --- | --- | --- |
"""
PLATFORMS = ("cpu", "numpy")


def page() -> str:
    """Returns the chapter on the failures that `REASONS` explains."""
    found = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    rows = [
        f"| {entry['reason']} | {len(entry['tests'])}{', sometimes' * ('sometimes' in entry)} "
        f"| {', '.join(entry.get('platforms', PLATFORMS))} | {entry['jax']} |\n"
        for entry in found["failures"]
    ]
    return HEAD.format(run=found["run"].strip()) + "".join(rows)
