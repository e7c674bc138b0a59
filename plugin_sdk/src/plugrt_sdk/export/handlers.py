"""`Handlers`: the handlers of custom calls that a host registers with an exported plugin."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from plugrt.capi.library.callback_threads import expect
from plugrt.errors import AlreadyExists, NotFound, PjrtError, Unimplemented
from plugrt.interface import Client, HandlerStages
from plugrt_sdk.log import logger


class Handlers:
    """Maps custom call targets to handlers in C, for present and future clients of a plugin.

    The C API registers handlers with a plugin, not with a client, so a host may register them
    before it creates a client. ``platform`` is the platform name that hosts see; None means the
    clients' own names.
    """

    def __init__(self, platform: str | None) -> None:
        self._platform = platform
        self._lock = threading.Lock()
        self._registered: dict[tuple[str, str], int | HandlerStages] = {}
        self._clients: weakref.WeakSet[Client] = weakref.WeakSet()
        self._api: Any = None

    def register(self, target: str, handler: int | HandlerStages, platform: str) -> None:
        """Makes C functions, by address, the handler of custom calls to ``target`` on a platform.

        Unless clients accept no handlers, each function is first called for its version, with this
        plugin's own functions for handlers: a host registers handlers with stages by them.

        Raises `AlreadyExists` if the target has another handler, `NotFound` for a platform that no
        client of the plugin has, and the errors of `Client.register_handler`: `Unimplemented` where
        the backend accepts no handlers.
        """
        with self._lock:
            key = (_canonical(platform), target)
            if self._registered.get(key, handler) != handler:
                raise AlreadyExists(
                    f"the custom call target {target!r} has another handler on {platform!r}; "
                    "handlers stay as long as the process"
                )
            clients = [*self._clients]
            ours = [client for client in clients if self._name(client) == key[0]]
            if clients and not ours:
                raise NotFound(
                    f"the handler of {target!r} is for the platform {platform!r}; the clients of "
                    f"this plugin are of {sorted({self._name(client) for client in clients})}"
                )
            if key not in self._registered:
                takes = not ours or any(client.capabilities.custom_calls for client in ours)
                if takes and isinstance(handler, int):
                    self._ask(handler)
                for client in ours:
                    self._register_with(client, target, handler)
            self._registered[key] = handler

    def add_client(self, client: Client) -> None:
        """Registers the handlers of earlier `register` calls with a new client.

        If the client refuses a handler, such as one whose target its own registry has, logs a
        warning and removes the handler from this table. The client stays usable; a later
        `register` of that target raises the client's error.
        """
        with self._lock:
            self._clients.add(client)
            if not client.capabilities.custom_calls:
                return
            for (platform, target), handler in [*self._registered.items()]:
                if platform == self._name(client):
                    try:
                        client.register_handler(target, handler)
                    except PjrtError as error:
                        del self._registered[platform, target]
                        logger.warning(
                            "the handler of the custom call target %r on %r is not used: %s",
                            target, platform, error.message,
                        )  # fmt: skip

    def _register_with(self, client: Client, target: str, handler: int | HandlerStages) -> None:
        """Registers with a client; an error names the target, whatever the client says."""
        try:
            client.register_handler(target, handler)
        except Unimplemented:
            raise
        except PjrtError as error:
            raise AlreadyExists(
                f"{client.backend_name} refuses the handler of the custom call target {target!r}, "
                f"of which its own registry may have one: {error.message}. Register the handler "
                "under another name"
            ) from error

    def drop_client(self, client: Client) -> None:
        """Removes a client that is being closed: later handlers are not registered with it."""
        with self._lock:
            self._clients.discard(client)

    def _ask(self, address: int) -> None:
        # Imported late: it imports cffi.
        from plugrt.capi.extensions import ffi_frames, ffi_functions

        if self._api is None:
            registering = ffi_functions.registering(self.register)
            self._api = ffi_frames.make_api(ffi_frames.FRAME_VERSION, handler_register=registering)
            expect((self._api, registering))  # hosts keep the functions
        ffi_frames.handler_version(address, ffi_frames.FRAME_VERSION, self._api)

    def _name(self, client: Client) -> str:
        return _canonical(self._platform or client.platform)


def _canonical(platform: str) -> str:
    """Returns a platform's name as XLA compares it: without case, its ``Host`` being ``cpu``."""
    name = platform.lower()
    return "cpu" if name == "host" else name
