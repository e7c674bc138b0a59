"""A missing requirement is reported; in CI it is a failure."""

from __future__ import annotations

import subprocess

import pytest

from support import installed, requirements

Skipped, Failed = pytest.skip.Exception, pytest.fail.Exception
CANNOT = Failed if requirements.IN_CI else Skipped


@pytest.mark.parametrize(("ci", "outcome"), [(False, Skipped), (True, Failed)])
def test_missing_requirements_skip_or_fail_in_ci(ci: bool, outcome: type[Exception]) -> None:
    with pytest.raises(outcome, match="no plugin here"):
        requirements.cannot("no plugin here", in_ci=ci)
    (skips,) = requirements.needs(False, "a plugin", in_ci=ci).args
    assert skips is not ci
    assert requirements.needs(True, "a plugin", in_ci=ci).args == (False,)


@pytest.mark.parametrize(
    "errors",
    [
        "error: Failed to download `numpy==2.0`\n  cause: dns error",
        "error: Failed to fetch: `https://example.org/simple/numpy/`",
    ],
)
def test_only_what_is_out_of_reach_is_skipped(errors: str) -> None:
    with pytest.raises(CANNOT, match="numpy"):
        installed.unreachable_is_skipped(subprocess.CompletedProcess(["uv"], 2, "", errors))
    other = "error: Group `thin` is not defined in the project's table"
    installed.unreachable_is_skipped(subprocess.CompletedProcess(["uv"], 2, "", other))
