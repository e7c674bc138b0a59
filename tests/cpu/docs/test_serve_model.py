"""``examples/serve-model``: the ASGI application answers requests in batches, and stops."""

from __future__ import annotations

import asyncio
import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from support.markdown import ROOT

EXAMPLE = ROOT / "examples/serve-model"


async def post(app: Any, body: bytes) -> tuple[int, Any]:
    """Sends a request to the application; returns the status and the answer."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app({"type": "http"}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


async def serve(app: Any, bodies: list[bytes]) -> tuple[list[tuple[int, Any]], int]:
    """Starts the application, sends all requests at once, stops it; returns answers and calls."""
    asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    life = asyncio.create_task(app({"type": "lifespan"}, asked.get, said.put))
    asked.put_nowait({"type": "lifespan.startup"})
    assert (await said.get())["type"] == "lifespan.startup.complete"
    model, calls = app.batcher.model, []

    def call(tokens: Any) -> Any:
        calls.append(len(tokens))
        return model(tokens=tokens)

    app.batcher.model = call
    found = await asyncio.gather(*(post(app, body) for body in bodies))
    asked.put_nowait({"type": "lifespan.shutdown"})
    assert (await said.get())["type"] == "lifespan.shutdown.complete"
    await life
    return found, len(calls)


def test_the_server_answers_each_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "transformer.zip")
    made = runpy.run_path(str(EXAMPLE / "make_model.py"))
    made["main"](path)
    monkeypatch.setenv("MODEL", path)
    app = runpy.run_path(str(EXAMPLE / "app.py"))["App"]()
    tokens = np.random.default_rng(0).integers(0, made["WORDS"], (40, made["LENGTH"]), np.int32)
    bodies = [json.dumps(row.tolist()).encode() for row in tokens]
    found, calls = asyncio.run(serve(app, [*bodies, b"[1]", b"{"]))
    model = plugrt.load_model(path)
    expected = [int(np.asarray(model(tokens=row[None])).argmax()) for row in tokens]
    assert found[:40] == [(200, {"token": token}) for token in expected]
    assert [status for status, _ in found[40:]] == [400, 400]
    assert calls < 40, "requests that wait form a batch"
