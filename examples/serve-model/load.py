"""Starts the server on loopback, loads it with 1, 8 and 32 clients, and stops it.

``python load.py transformer.zip`` prints the throughput and latencies. It fails if a request is
lost or answered wrongly, or if the server does not stop by itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import plugrt

PORT = 8765
REQUESTS = 600


async def ask(clients: int, bodies: list[bytes], expected: list[int]) -> list[float]:
    """Returns the seconds of each request; each client has one connection."""
    seconds: list[float] = []
    todo = iter(range(REQUESTS))

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        for i in todo:
            body = bodies[i % len(bodies)]
            start = time.perf_counter()
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            size = int(head.lower().partition(b"content-length: ")[2].split()[0])
            answer = json.loads(await reader.readexactly(size))
            seconds.append(time.perf_counter() - start)
            assert answer["token"] == expected[i % len(bodies)], answer
        writer.close()

    await asyncio.gather(*(work() for _ in range(clients)))
    return seconds


async def connect(server: subprocess.Popen[bytes]) -> None:
    """Waits until the server listens."""
    while server.poll() is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", PORT)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise SystemExit("the server did not start")


async def main() -> None:
    """Runs the whole load."""
    model = plugrt.load_model(sys.argv[1])
    tokens = np.random.default_rng(1).integers(0, 256, (32, 32)).astype(np.int32)
    expected = np.asarray(model(tokens=tokens)).argmax(1).tolist()
    bodies = [json.dumps(row.tolist()).encode() for row in tokens]
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "app:app", "--port", str(PORT), "--log-level", "error"],
        cwd=Path(__file__).parent,
        env=os.environ | {"MODEL": str(Path(sys.argv[1]).absolute())},
    )
    try:
        await connect(server)
        for clients in (1, 8, 32):
            start = time.perf_counter()
            seconds = await ask(clients, bodies, expected)
            rate = len(seconds) / (time.perf_counter() - start)
            cuts = statistics.quantiles(seconds, n=100)
            assert len(seconds) == REQUESTS
            print(
                f"{clients:>2} clients: {rate:,.0f} requests/s, p50 {cuts[49] * 1e3:.1f} ms, "
                f"p99 {cuts[98] * 1e3:.1f} ms, {len(seconds)} of {REQUESTS} answered"
            )
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(30)
    assert code in (0, -signal.SIGTERM), code  # uvicorn shuts down, then ends by the signal it got
    print("the server stopped")


if __name__ == "__main__":
    asyncio.run(main())
