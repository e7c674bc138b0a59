"""Kills device servers and their clients (SIGKILL) at random moments: ``nox -s remote_long``.

A process with the imports done forks a server or a client for each request. A killed server is
`Unavailable` in its client, which then uses the next one; a killed client leaves no session,
descriptor or segment in its server, which continues to serve another.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from operator import le
from pathlib import Path
from typing import Any

import numpy as np

from plugrt.errors import Unavailable
from plugrt.interface import CompileOptions, Program
from plugrt_remote.addresses import connect
from plugrt_remote.client import RemoteClient
from support.device_server import becomes_true

FORKS = """
import json, os, signal, sys
import plugrt.programs.parsing, plugrt.stablehlo.entry_attributes, plugrt.stablehlo.passes
import plugrt.stablehlo.callback_order
import plugrt_numpy.backend, plugrt_remote.serving.server, plugrt_sdk.client
from plugrt_numpy import plugin
from support.remote_kills import use_at_random

signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # which ends those that were killed
for line in sys.stdin:
    what, address, seed = json.loads(line)
    if not (child := os.fork()):
        break
    print(child, flush=True)
else:
    sys.exit()
if what == "client":
    use_at_random(address, seed)
server = plugrt_remote.serving.server.Server(plugin.create_client({"num_devices": 2}))
server.bind(address)
server.serve()
"""
ADD = b"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
CALLS = b"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @plugrt_host_callback(%x) {
    api_version = 4 : i32, backend_config = {index = 1 : ui64}
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
X = np.array([1, 2, 3, 4], np.float32)


def use_at_random(address: str, seed: int) -> None:
    """Makes random calls that send or receive, until the server's process or this one ends."""
    rng, client = random.Random(seed), RemoteClient(address)
    first, second = client.devices()
    program = client.compile(Program(ADD), CompileOptions())
    calls = Program(CALLS, callbacks={1: lambda arrays: [-arrays[0]]})
    calling = client.compile(calls, CompileOptions())
    x = client.buffer_from_host(X, first)
    [result] = program.execute([(x,)])
    large = np.ones(1 << 18, np.float32)
    uses: list[Any] = [
        lambda: [program.execute([result]) for _ in range(50)],
        lambda: client.buffer_from_host(X, second),
        lambda: client.buffer_from_host(large, first).to_host(),
        lambda: result[0].to_host(),
        lambda: [calling.execute([result]) for _ in range(5)],
        lambda: calling.execute([result])[0][0].to_host(),
        lambda: program.execute([result])[0][0].block_until_ready(),
        lambda: program.execute([result])[0][0].ready_event().on_ready(lambda _: None),
        lambda: client.compile(Program(ADD + b" // %d" % rng.random()), CompileOptions()),
        lambda: client.shards((x.copy_to_device(second), x)),
        lambda: client.stats(),
    ]
    while True:
        rng.choice(uses)()


def serves(client: RemoteClient) -> bool:
    """Whether a client's server computes."""
    program = client.compile(Program(ADD), CompileOptions())
    [[result]] = program.execute([(client.buffer_from_host(X, client.devices()[0]),)])
    return bool((result.to_host() == [2, 4, 6, 8]).all())


class Forks:
    """A process that forks servers and clients."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip

    def start(self, what: str, address: str, seed: int = 0) -> int:
        """Returns the id of a new process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([what, address, seed]), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def end(self) -> None:
        """Ends the process; its children are the caller's to kill."""
        self._process.communicate()


@contextmanager
def forking() -> Iterator[tuple[Forks, str]]:
    """Gives a `Forks`, and the address for its servers."""
    forks = Forks()
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield forks, f"unix:{folder}/s"
    finally:
        forks.end()


def connect_to_new(address: str) -> RemoteClient:
    """Returns a client of a server that is still starting; raises `Unavailable` after a minute."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return RemoteClient(address)
        except Unavailable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002)


def is_unserved(address: str) -> bool:
    """Whether no server listens at an address.

    A killed server's connections may end before its listening socket, and while that accepts
    connections another server is refused.
    """
    try:
        connect(address).sock.close()
    except Unavailable:
        return True
    return False


Held = tuple[int, int]
"""The numbers of open descriptors and of mapped segments of a process."""


def held_by(process: int | str) -> Held:
    """Returns the numbers of open descriptors and of mapped segments of a process."""
    maps = Path(f"/proc/{process}/maps").read_text()
    return len(os.listdir(f"/proc/{process}/fd")), maps.count("memfd:plugrt-remote")


def note_held(held: list[Held], process: int | str) -> None:
    """Appends the result of `held_by`, once it does not exceed the first one in ``held``.

    Waits for that, since threads may be ending, also of other tests in the process.
    """

    def is_no_more() -> bool:
        gc.collect()
        return not held or all(map(le, held_by(process), held[0]))

    becomes_true(is_no_more)
    held.append(held_by(process))


def kill_servers(count: int, seed: int) -> tuple[Held, Held]:
    """Kills servers in use by this process. Returns its `Held` after the first and the last."""
    rng, held = random.Random(seed), list[Held]()
    threads = len(os.listdir("/proc/self/task"))
    with forking() as (forks, address):
        for number in range(count):
            server = forks.start("server", address)
            client = connect_to_new(address)
            assert serves(client)
            client.close()
            timer = threading.Timer(rng.random() * 0.05, os.kill, (server, signal.SIGKILL))
            timer.start()
            with suppress(Unavailable):  # the expected end; other errors propagate
                use_at_random(address, rng.randrange(1 << 30))
            timer.join()
            assert becomes_true(partial(is_unserved, address))
            if number in (0, count - 1):
                assert becomes_true(lambda: len(os.listdir("/proc/self/task")) <= threads)
                note_held(held, "self")
    return held[0], held[-1]


def kill_clients(count: int, seed: int) -> tuple[Held, Held]:
    """Kills clients of a server. Returns its `Held` after the first and the last."""
    rng, held = random.Random(seed), list[Held]()
    with forking() as (forks, address):
        server = forks.start("server", address)
        try:
            client = connect_to_new(address)
            for number in range(count):
                killed = forks.start("client", address, rng.randrange(1 << 30))
                time.sleep(rng.random() * 0.15)
                os.kill(killed, signal.SIGKILL)
                assert serves(client)
                if number in (0, count - 1):
                    assert becomes_true(lambda: client.stats()["sessions"] == 1)
                    note_held(held, server)
            client.close()
        finally:
            os.kill(server, signal.SIGKILL)
    return held[0], held[-1]
