"""The child process of a plugin in PLUGRT_ISOLATE: a server with one session."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from plugrt.errors import PlugrtError
from plugrt.plugins.selection.backends import get_backend
from plugrt.settings.declarations import config
from plugrt_remote import wire
from plugrt_remote.serving.backend import Policy
from plugrt_remote.serving.server import Server


def serve(argument: dict[str, Any], say: Any) -> None:
    """Starts the named plugin and serves it to the parent until the parent closes the connection.

    Passes ``say`` the process id, and then either the server's address or the error.
    """
    say(process=os.getpid())
    name: str = argument["name"]
    config.update("client_create_options", {name: argument["options"]})
    try:
        client = get_backend(name)
    except PlugrtError as error:
        say(error=wire.pack_error(error))
        return
    with tempfile.TemporaryDirectory(prefix="plugrt-isolated-") as folder:
        server = Server(client, Policy(custom_calls=("*",)))
        server.bind(f"unix:{folder}/s")
        say(address=f"unix:{folder}/s")
        serve_client = server.accept()
        server.close()
    assert serve_client is not None
    serve_client()
    os._exit(0)  # a normal exit waits for calls of the library
