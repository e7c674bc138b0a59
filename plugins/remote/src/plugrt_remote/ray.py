"""`DeviceServers`: device servers as actors of a Ray cluster, which this module does not import."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from plugrt.errors import ConfigError
from plugrt.frames.argument_errors import with_argument_errors
from plugrt_remote.serving.backend import Policy
from plugrt_remote.serving.server import Server
from plugrt_remote.tls import read_token

_NAMES = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
"""Ray's options for resources that have an option each."""


class ServingActor:
    """A server in the process of an actor, which Ray restarts if it ends."""

    def __init__(
        self, platform: str | None, bind: str, certificate: str, key: str, token_file: str
    ) -> None:
        os.environ.pop("PLUGRT_REMOTE", None)  # the server must not use the plugin remote
        from plugrt import config
        from plugrt.plugins.selection.backends import get_backend

        if platform:
            config.update("platforms", platform)
        token = read_token(token_file) if token_file else b""
        self._server = Server(get_backend(platform), Policy(token))
        self._server.bind(bind, certificate, key)
        host = bind.removesuffix(":0")
        self._address = f"{host}:{self._server.port}" if token and host != bind else bind
        threading.Thread(target=self._server.serve, daemon=True).start()

    def address(self) -> str:
        """Returns the server's address, as a value of PLUGRT_REMOTE."""
        return self._address

    def process(self) -> int:
        """Returns the id of the actor's process."""
        return os.getpid()

    def stop(self) -> None:
        """Closes the listening socket and removes its file."""
        self._server.close()


class DeviceServers:
    """Device servers as actors of a Ray cluster, which end with the job.

    Ray places each server by ``resources``, such as ``{"GPU": 1}``, and restarts one that ended.
    By default a server listens at a Unix socket of this user. For clients on other machines,
    ``bind`` is ``tls://HOST:0``, and ``certificate``, ``key`` and ``token_file`` are paths that
    exist on each machine. Raises `ConfigError` if Ray is not installed. Servers raise the errors of
    ``plugrt serve``, which Ray wraps.
    """

    @with_argument_errors
    def __init__(
        self,
        platform: str | None = None,
        count: int = 1,
        *,
        resources: Mapping[str, float] | None = None,
        bind: str = "",
        certificate: str = "",
        key: str = "",
        token_file: str = "",
    ) -> None:
        try:
            ray: Any = import_module("ray")
        except ImportError:
            raise ConfigError("DeviceServers needs Ray: pip install ray") from None
        self._ray = ray
        given = dict(resources or {})
        options = {_NAMES[name]: given.pop(name) for name in [*given] if name in _NAMES}
        actor = ray.remote(ServingActor).options(
            **options, resources=given, max_restarts=-1, max_task_retries=-1
        )
        self._folder = None if bind else tempfile.TemporaryDirectory(prefix="plugrt-ray-")
        places = [bind or f"unix:{self._folder and self._folder.name}/{i}" for i in range(count)]
        self._actors = [
            actor.remote(platform, place, certificate, key, token_file) for place in places
        ]

    def addresses(self) -> list[str]:
        """Waits until the servers listen, and returns their addresses; a restart may change one."""
        return list(self._ray.get([actor.address.remote() for actor in self._actors]))

    def processes(self) -> list[int]:
        """Returns the id of each server's process."""
        return list(self._ray.get([actor.process.remote() for actor in self._actors]))

    def stop(self) -> None:
        """Ends the servers."""
        self._ray.get([actor.stop.remote() for actor in self._actors])
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors.clear()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> DeviceServers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
