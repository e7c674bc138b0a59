"""PLUGRT_ISOLATE: a plugin runs in a child process; its crash or hang becomes an error."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from support import children
from support.apart import runs_apart
from support.device_server import becomes_true
from support.distributions import child_environment, install, run_warm

pytestmark = runs_apart("lifetimes")

SICK = """
import os, signal, sys, time
import plugrt.programs.parsing, plugrt.stablehlo.passes  # whose time counts otherwise
import plugrt_numpy.backend
from plugrt.interface import Client
from plugrt.plugins import Plugin

class Sick(Plugin):
    name = "sick"
    def create_client(self, options, distributed=None):
        assert options["number"] == 7
        if os.environ.get("SICK") == "start":
            print("frobnitz: no firmware", file=sys.stderr)
            os.kill(os.getpid(), signal.SIGSEGV)
        client = plugrt_numpy.plugin.create_client({"num_devices": 2})
        compile = client.compile
        def compile_or_not(program, options):
            if program.name.startswith("crash"):
                print("frobnitz: bus error at 0x7", file=sys.stderr)
                os.kill(os.getpid(), signal.SIGSEGV)
            if program.name.startswith("hang"):
                time.sleep(1000)
            return compile(program, options)
        client.compile = compile_or_not
        type(client).platform_version = f"{os.getpid()}"
        return client

plugin = Sick()
"""
USES = """
import os, time
import numpy as np
import plugrt

def plus(x): return x + 1
def crash(x): return x + 2
def hang(x): return x + 3
f, x = plugrt.jit(plus), np.arange(3.0, dtype=np.float32)
processes = []
for sick in (crash, hang):
    y = f(x)
    processes.append(int(plugrt.get_backend().platform_version))
    assert processes[-1] != os.getpid()
    for use in (lambda: plugrt.jit(sick)(x), lambda: f(x), lambda: np.asarray(f(y))):
        try:
            print(use())
        except plugrt.errors.Unavailable as error:
            print(error)
    plugrt.clear_backends()
print(np.asarray(f(x)), plugrt.devices())
"""
ENVIRON = {
    "PLUGRT_ISOLATE": "sick", "JAX_PLATFORMS": "sick", "PLUGRT_ISOLATE_SECONDS": "5",
    "PLUGRT_CLIENT_CREATE_OPTIONS": "sick:number:7",
}  # fmt: skip


def sick(site: Path) -> Path:
    install(site, "sick-dist", {"plugrt.plugins": {"sick": "sick_plugin:plugin"}},
            {"sick_plugin": SICK})  # fmt: skip
    return site


def test_a_crash_and_a_hang_are_unavailable_and_another_process_can_be_started(
    tmp_path: Path,
) -> None:
    shown = run_warm(USES, sick(tmp_path), **ENVIRON)
    assert not shown.returncode, shown.stderr
    *errors, last = shown.stdout.splitlines()
    assert last == "[1. 2. 3.] [numpy:0, numpy:1]", shown.stderr
    assert len(errors) == 6
    for error in errors:
        assert "UNAVAILABLE: the process of the plugin sick" in error
        assert "plugrt.clear_backends() starts it again" in error
    for error in errors[:3]:
        assert "was killed by SIGSEGV" in error
        assert "frobnitz: bus error at 0x7" in error
    for error in errors[3:]:
        assert "did not answer for 5 s" in error


def test_a_crash_at_the_start_is_that_plugins_error(tmp_path: Path) -> None:
    code, site = "import plugrt\nplugrt.devices()", sick(tmp_path)
    shown = run_warm(code, site, **ENVIRON, SICK="start")
    for words in ("PluginUnavailable", "killed by SIGSEGV", "frobnitz: no firmware"):
        assert words in shown.stderr
    for names, words in {"sikc": "did you mean 'sick'", "sick,other": "'other'"}.items():
        shown = run_warm(code, site, **{**ENVIRON, "PLUGRT_ISOLATE": names})
        assert f"PLUGRT_ISOLATE requests {names.rpartition(',')[2]!r}" in shown.stderr
        assert words in shown.stderr


def test_the_process_ends_with_its_parent(tmp_path: Path) -> None:
    code = """
    import os, time
    import plugrt
    print(plugrt.get_backend().platform_version, flush=True)
    time.sleep(600)
    """
    env = child_environment(sick(tmp_path), **ENVIRON)
    with children.start([sys.executable, "-c", code.replace("\n    ", "\n")], env=env) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline() or parent.communicate()[1])
        os.kill(parent.pid, signal.SIGKILL)

    def ended() -> bool:
        try:
            return Path(f"/proc/{process}/stat").read_text().split()[2] == "Z"
        except OSError:
            return True

    assert becomes_true(ended)
