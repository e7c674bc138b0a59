"""The handlers of custom calls that users registered, by platform, and the clients that have them.

A client gets one when it compiles a program that names it: registering starts no backend.
"""

from __future__ import annotations

import re
import threading
import weakref

from plugrt.errors import AlreadyExists, PjrtError
from plugrt.interface import Client, Handler, Program

_lock = threading.Lock()
_handlers: dict[tuple[str, str], Handler | int] = {}
"""Platform and target to a function, or the address of one in C."""
_known: weakref.WeakKeyDictionary[Client, set[str]] = weakref.WeakKeyDictionary()


def register_target(target: str, handler: Handler | int, platform: str) -> None:
    """Makes a function the handler of custom calls to ``target`` on a platform, for good.

    A second time with an equal one does nothing; raises `AlreadyExists` for another one.
    """
    with _lock:
        found = _handlers.setdefault((platform, target), handler)
    if found is not handler and found != handler:
        raise AlreadyExists(
            f"the custom call target {target!r} has another handler on {platform!r}, "
            f"{found!r:.60}; handlers stay as long as the process. Fix: register this one under a "
            "name of its own"
        )


def add_handlers(client: Client, program: Program) -> None:
    """Registers with a client the handlers of its platform that a program may call."""
    if not _handlers:
        return
    with _lock:
        known = _known.setdefault(client, set())
        for (platform, target), handler in _handlers.items():
            # The name of a target stands in a program as it is, in text and in bytecode.
            if platform != client.platform or target in known:
                continue
            if target.encode() not in program.code:
                continue
            try:
                client.register_handler(target, handler)
            except PjrtError as error:
                raise type(error)(
                    f"the handler that was registered for the custom call {target!r} cannot be had "
                    f"by {client.backend_name}: {error.message}"
                ) from error
            known.add(target)


def explain_refusal(error: PjrtError) -> PjrtError:
    """Returns a compiler's error, with the reason where it has no LAPACK."""
    found = re.search(r"\blapack_[a-z]+(_ffi)?\b", error.message)
    if found is None:
        return error
    return type(error)(
        f"{error.message}\nThe program calls {found[0]}, LAPACK as JAX calls it on CPUs: a "
        "function of jaxlib, which the plugin 'cpu' registers and no other backend has. Fix: run "
        'the program there (backend="cpu"); or compute with plugrt.array_api.linalg, whose '
        "programs call no LAPACK"
    )
