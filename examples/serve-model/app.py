"""Serves a model over HTTP with batching, as an ASGI application: ``uvicorn app:app``.

MODEL is the path of the model. ``POST /`` with a JSON list of tokens returns the most likely
next token. Requests that wait while a batch runs form the next batch.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

import plugrt

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Request = tuple[np.ndarray[Any, Any], asyncio.Future[int]]


class Batcher:
    """Runs a model on the requests that wait, at most as many as the largest bucket holds."""

    def __init__(self, path: str) -> None:
        self.model = plugrt.load_model(path)
        self.model.warm_up()
        self.most = max(bucket["batch"] for bucket in self.model.buckets)
        text = self.model.inputs[0].partition("[batch,")[2]
        self.length = int(text.rstrip("]"))
        self.waiting: asyncio.Queue[Request | None] = asyncio.Queue()

    async def run(self) -> None:
        """Runs batches until `stop`, after which the requests before it are answered."""
        while (first := await self.waiting.get()) is not None:
            batch = [first]
            while len(batch) < self.most and not self.waiting.empty():
                request = self.waiting.get_nowait()
                if request is None:
                    self.stop()
                    break
                batch.append(request)
            tokens = np.stack([request[0] for request in batch])
            try:
                found = await asyncio.to_thread(lambda x: np.asarray(self.model(tokens=x)), tokens)
            except plugrt.errors.PlugrtError as error:
                for _, answer in batch:
                    answer.set_exception(error)
                continue
            for (_, answer), logits in zip(batch, found, strict=True):
                answer.set_result(int(logits.argmax()))

    def stop(self) -> None:
        """Ends `run` after the requests that wait."""
        self.waiting.put_nowait(None)

    async def predict(self, tokens: list[int]) -> int:
        """Returns the next token; `ValueError` for a list that is no sequence of tokens."""
        array = np.array(tokens, np.int32)
        if array.shape != (self.length,):
            raise ValueError(f"{self.length} tokens were expected, not {array.shape}")
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.waiting.put_nowait((array, answer))
        return await answer


class App:
    """The ASGI application."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Handles the start and the end of the server, and requests."""
        if scope["type"] == "lifespan":
            await self.live(receive, send)
        elif scope["type"] == "http":
            await self.answer(receive, send)

    async def live(self, receive: Receive, send: Send) -> None:
        """Loads the model when the server starts, and finishes its work when it stops."""
        await receive()
        self.batcher = Batcher(os.environ["MODEL"])
        work = asyncio.create_task(self.batcher.run())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.batcher.stop()
        await work
        await send({"type": "lifespan.shutdown.complete"})

    async def answer(self, receive: Receive, send: Send) -> None:
        """Answers one request: 200 with the token, or 400 with the reason."""
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        try:
            status, found = 200, {"token": await self.batcher.predict(json.loads(body))}
        except (ValueError, TypeError, OverflowError) as error:
            status, found = 400, {"error": str(error)}
        reply = json.dumps(found).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(reply)),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": reply})


app = App()
