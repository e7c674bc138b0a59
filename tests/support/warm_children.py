"""`run`: code in a child that begins with plugrt, NumPy and jaxlib imported, a second's work.

A server of this process has imported them, and forks for each run. It has no client, no MLIR
context and one thread, so that a fork is complete; plugrt reads its settings at their first use.
Tests of start-up, of imports and of the interpreter itself use `children.run`.

The garbage collector ignores the server's imports: a collection, as at each exit, would write to
all of them, and so copy the server's memory, 0.16 of a second in each child.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from support import children

SERVER = """
import csv, gc, json, os, sys
import elftools.elf.elffile, importlib_metadata, numpy
import plugrt.cli, plugrt.cli.compile, plugrt.cli.devices, plugrt.cli.doctor, plugrt.cli.inputs
import plugrt.cli.run, plugrt.execution.arrays.array
import plugrt.array_api, plugrt.capi.client.create, plugrt.capi.programs.loaded_executable
import plugrt.lax, plugrt.stablehlo.bindings, plugrt.transforms.jit
import plugrt_cpu.compiling, plugrt_cpu.create_client

gc.collect()
gc.freeze()
for line in sys.stdin:
    assert len(os.listdir("/proc/self/task")) == 1
    asked = json.loads(line)
    if not (child := os.fork()):
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for number, name in enumerate((asked["stdin"], asked["stdout"], asked["stderr"])):
    flags = os.O_CREAT | os.O_WRONLY if number else os.O_RDONLY
    os.dup2(os.open(name, flags), number)
os.chdir(asked["cwd"])
os.environ.clear()
os.environ.update(asked["env"])
sys.path[1:1] = filter(None, asked["env"].get("PYTHONPATH", "").split(os.pathsep))
sys.argv = ["-c", *asked["arguments"]]
main = type(sys)("__main__")
main.__builtins__ = __builtins__
server, sys.modules["__main__"] = sys.modules["__main__"], main
exec(asked["code"], vars(main))
"""
READ_AT_START = (
    "PYTHON", "LC_", "LANG", "LD_", "ASAN_", "OPENBLAS_", "MPITRAMPOLINE_", "PLUGRT_CORE",
    "TF_CPP_",
)  # fmt: skip
"""Prefixes of variables that the interpreter, a library or the core reads at start."""


def is_warm(env: Mapping[str, str]) -> bool:
    """Whether a child with this environment may be a fork: it has our `READ_AT_START`.

    The folders of PYTHONPATH are put into ``sys.path`` later.
    """
    return _at_start(env) == _at_start(os.environ)


def run(
    code: str,
    arguments: Sequence[str],
    env: Mapping[str, str],
    timeout: float,
    stdin: Path = Path(os.devnull),
) -> subprocess.CompletedProcess[str]:
    """Runs code as ``python -c code argument ...``; kills it after ``timeout`` seconds."""
    server = _server()
    assert server.stdin is not None
    with tempfile.TemporaryDirectory(prefix="plugrt-warm-") as folder:
        files = {name: str(Path(folder, name)) for name in ("stdout", "stderr")}
        asked = {
            "code": code, "arguments": arguments, "env": dict(env), "cwd": os.getcwd(),
            "stdin": str(stdin.resolve()), **files,
        }  # fmt: skip
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        child = _read_number(server, 60)
        try:
            status = _read_number(server, timeout)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            _read_number(server, 60)
            raise
        written = [Path(path).read_text("utf-8") for path in files.values()]
    return subprocess.CompletedProcess([sys.executable, "-c", code], status, *written)


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in env.items() if k.startswith(READ_AT_START) and k != "PYTHONPATH"}


def _read_number(server: subprocess.Popen[str], seconds: float) -> int:
    """Returns the next line of the server; reads no further, since ``select`` sees no buffer."""
    assert server.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([server.stdout], [], [], seconds)[0]:
            raise subprocess.TimeoutExpired(server.args, seconds)
        read = os.read(server.stdout.fileno(), 1)
        assert read, server.communicate()[1]
        line += read
    return int(line)


@cache
def _server() -> subprocess.Popen[str]:
    own = ("JAX_", "PLUGRT_", "PJRT_")
    env = {k: v for k, v in os.environ.items() if k == "PLUGRT_CORE" or not k.startswith(own)}
    server = children.start([sys.executable, "-c", SERVER], env=env, stdin=subprocess.PIPE)
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    if server.stdin is not None:
        server.stdin.close()
    server.wait()
