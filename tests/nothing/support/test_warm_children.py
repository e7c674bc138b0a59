"""Children of `support.warm_children` are as new interpreters that have imported plugrt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from support import warm_children
from support.distributions import child_environment, run_cli, run_python

SHOW = """
import json, os, sys, threading
print(json.dumps({
    "argv": sys.argv, "path": sys.path[:3], "input": sys.stdin.read(), "cwd": os.getcwd(),
    "own": {k: v for k, v in os.environ.items() if k.startswith(("JAX_", "PLUGRT_"))},
    "settings": __import__("plugrt").config.jax_platforms, "name": __name__,
    "threads": threading.active_count(), "main": sorted(k for k in vars() if k[0] != "_"),
    "jax": "jax" in sys.modules,
}))
print("an error", file=sys.stderr)
sys.exit(3)
"""


def test_a_child_is_as_a_new_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    env = child_environment(tmp_path, JAX_PLATFORMS="numpy")
    warm = warm_children.run(SHOW, ("a", "b c"), env, 60)
    fresh = run_python(SHOW, tmp_path, arguments=("a", "b c"), JAX_PLATFORMS="numpy")
    assert (warm.returncode, warm.stderr) == (fresh.returncode, fresh.stderr) == (3, "an error\n")
    of_fresh, of_warm = json.loads(fresh.stdout), json.loads(warm.stdout)
    assert of_warm == of_fresh
    assert of_warm["settings"] == "numpy"


def test_input_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("given")
    code = "import sys; print(sys.stdin.read())"
    done = warm_children.run(code, (), child_environment(), 60, tmp_path / "input")
    assert done.stdout == "given\n"


@pytest.mark.parametrize(
    ("code", "status", "says"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("import os; os._exit(7)", 7, ""),
        ("1 / 0", 1, "ZeroDivisionError: division by zero"),
        ("import atexit, sys; atexit.register(print, 'left', file=sys.stderr)", 0, "left"),
    ],
)
def test_how_a_child_ends(code: str, status: int, says: str) -> None:
    done = warm_children.run(code, (), child_environment(), 60)
    assert done.returncode == status
    assert says in done.stderr


def test_a_child_that_takes_too_long_is_killed_and_the_next_one_runs(tmp_path: Path) -> None:
    code = f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
    with pytest.raises(subprocess.TimeoutExpired):
        warm_children.run(f"{code}time.sleep(600)", (), child_environment(), 1)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert warm_children.run("print(1)", (), child_environment(), 60).stdout == "1\n"


def test_what_is_read_at_start_needs_a_new_interpreter() -> None:
    assert warm_children.is_warm(child_environment(Path("/folder"), JAX_PLATFORMS="cpu"))
    for name in ("PYTHONHASHSEED", "PLUGRT_CORE", "LD_PRELOAD", "LC_ALL"):
        assert not warm_children.is_warm(child_environment(**{name: "another"})), name
    shown = run_cli("--version", PYTHONVERBOSE="1")
    assert "import 'plugrt.cli'" in shown.stderr
