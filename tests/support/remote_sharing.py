"""Two programs that share one device for minutes: ``nox -s remote_long -- sharing``.

Each launches dependent matrix products of its own size and reads a result now and then, which it
compares with NumPy's. Every ten seconds there is a line: the launches per second of each, their
busy time, and the server's resident memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
import json, sys, time
import numpy as np
import plugrt
size, in_flight, seconds = map(int, sys.argv[1:])
a = np.eye(size, dtype=np.float32)[np.random.default_rng(0).permutation(size)]
step = plugrt.jit(lambda v, m: v @ m)
m, x, whole = plugrt.device_put(a), np.arange(size * size, dtype=np.float32).reshape(size, size), 0
np.asarray(step(plugrt.device_put(x), m))  # the compilation
end, told, right = time.monotonic() + seconds, time.monotonic(), True
while time.monotonic() < end:
    v, wanted = plugrt.device_put(x), x
    for _ in range(in_flight):
        v, wanted, whole = step(v, m), wanted[:, a.argmax(0)], whole + 1
    right = right and bool(np.array_equal(np.asarray(v), wanted))
    if time.monotonic() - told > 10:
        told = time.monotonic()
        print(json.dumps([whole, right]), flush=True)
print(json.dumps([whole, right]), flush=True)
"""


def resident(process: int) -> int:
    """Returns the resident memory of a process in MB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def share(seconds: int, sizes: tuple[int, ...] = (256, 1024), platform: str = "cpu") -> bool:
    """Runs a program of each size; prints the figures, and returns whether results were right."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/s"
        serve = "import plugrt.cli, sys; plugrt.cli.main(sys.argv[1:])"
        command = [sys.executable, "-c", serve, "serve", "--platform", platform, "--bind", address]
        server = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert server.stdout is not None
        server.stdout.readline()
        environ = {**os.environ, "PLUGRT_REMOTE": address, "JAX_PLATFORMS": "remote"}
        try:
            alone = [_run([size], 10, environ, server.pid)[0][0] / 10 for size in sizes]
            found = _run(sizes, seconds, environ, server.pid)
        finally:
            server.kill()
            server.wait()
    for size, rate, (launches, right) in zip(sizes, alone, found, strict=True):
        own = launches / seconds
        print(f"{size}: {own:.1f} launches/s, {rate:.1f} alone ({own / rate:.2f}), right: {right}")
    return all(right for _, right in found)


def _run(
    sizes: tuple[int, ...] | list[int], seconds: int, environ: dict[str, str], server: int
) -> list[tuple[int, bool]]:
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(size), "100", str(seconds)],
            env=environ, stdout=subprocess.PIPE, text=True,
        )
        for size in sizes
    ]  # fmt: skip
    begin, memory = time.monotonic(), []
    while any(program.poll() is None for program in programs):
        time.sleep(1)
        if int(time.monotonic() - begin) % 10 == 0:
            memory.append(resident(server))
    print(f"{[*sizes]} for {seconds} s: the server's resident MB every 10 s: {memory}", flush=True)
    found = [json.loads(program.communicate()[0].splitlines()[-1]) for program in programs]
    return [(int(launches), bool(right)) for launches, right in found]
