"""What tests do under the sanitizers: `nox -s core_sanitized` says so by what it preloads."""

from __future__ import annotations

import os
import re
import sys

import pytest

from support import children, native_core
from support.markdown import ROOT

LEFT_OUT = "tests/nothing/plugins/test_sick_files.py"


def test_what_cannot_run_is_skipped_and_the_summary_says_why() -> None:
    # There is no such file: the linker says so and goes on. Sanitized, the real one stays.
    environ = {"LD_PRELOAD": "libasan_of_no_machine.so", **os.environ}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", LEFT_OUT]
    done = children.run(command, timeout=250, cwd=ROOT, env=environ)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ skipped in ", done.stdout, re.M), done.stdout
    why = "not under the sanitizers: it bounds a process's addresses"
    assert re.search(rf"^SKIPPED \[\d+\] {LEFT_OUT}:\d+: {why}", done.stdout, re.M), done.stdout


def test_a_child_may_die_of_its_own_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert native_core.with_plain_crashes(sanitized=False) == {}
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    options = native_core.with_plain_crashes(sanitized=True)["ASAN_OPTIONS"].split(":")
    assert options[0] == "detect_leaks=0"  # what the run has given holds for the child, too
    assert {"handle_segv=0", "handle_sigbus=0", "handle_abort=0"} <= set(options)
