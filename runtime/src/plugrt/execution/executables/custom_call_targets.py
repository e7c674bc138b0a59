"""Handlers of custom calls that users registered for platforms, and their registration by clients.

A client gets a handler when it compiles a program that names it: registering starts no backend.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy.typing as npt

from plugrt.callbacks.host_callbacks import call_noted
from plugrt.callbacks.launch_watch import WatchedFunction
from plugrt.errors import AlreadyExists, InvalidArgument, PjrtError, PluginBroken
from plugrt.interface import Client, Handler, HandlerStages, Program
from plugrt.lifetime.callback_exits import as_failure
from plugrt.plugins.offers.offers import collect_offers
from plugrt.plugins.plugin import LoweringRule
from plugrt.plugins.record import Record
from plugrt.plugins.selection.backends import process_backends
from plugrt.wire import mlir_bytecode
from plugrt.wire.protobuf import varint

Functions = Mapping[str, Callable[..., Any]]
"""Lowerings by operation, or handlers by target."""

# Process-wide: guards the three tables below.
_lock = threading.Lock()
# Process-wide: registered for a platform, before and after it has a client.
_handlers: dict[tuple[str, str], WatchedHandler | int | HandlerStages] = {}
"""Platform and target to a Python function, or to the address of a C function or of its stages."""
# Process-wide: registered for a platform, before and after it has a client.
_types: dict[tuple[str, str], tuple[int, int | None]] = {}
"""Platform and name to the addresses of a type's id and its functions."""
# Process-wide: written at a client's first program; removed with the client.
_known: weakref.WeakKeyDictionary[Client, set[tuple[str, str]]] = weakref.WeakKeyDictionary()
"""Registrations of each client: ("handler", target) and ("type", name)."""


# Process-wide: packages are asked once for each client; removed with the client.
_offered: weakref.WeakKeyDictionary[Client, LinearAlgebra] = weakref.WeakKeyDictionary()
_LAPACK = b"lapack_"
"""The prefix of targets whose handlers packages provide (`find_linear_algebra`)."""


class LinearAlgebra(NamedTuple):
    """The lowerings and handlers of packages for a client (hook ``plugrt_linear_algebra``)."""

    lowerings: tuple[tuple[str, LoweringRule, Record], ...]
    handlers: Mapping[str, WatchedHandler]


class WatchedHandler(WatchedFunction):
    """The Python function of a custom call, as programs call it."""

    __slots__ = ("_target", "function")

    def __init__(self, target: str, function: Handler) -> None:
        super().__init__()
        self._target = target
        self.function = function

    @property
    def title(self) -> str:
        """The name of the handler in errors."""
        return f"the handler of {self._target!r}"

    def __call__(
        self,
        arguments: Sequence[npt.NDArray[Any]],
        results: Sequence[npt.NDArray[Any]],
        attributes: Mapping[str, object],
    ) -> None:
        """Fills in the results; with zeros if the launch has failed."""

        def call() -> None:
            try:
                returned: object = call_noted(self, self.function, arguments, results, attributes)
            except PjrtError:
                raise
            except BaseException as error:  # C cannot unwind: `raise_exit` raises it in the caller
                raise as_failure(self.title, error) from error
            if returned is not None:
                raise InvalidArgument(
                    f"{self.title} returned {returned!r:.60}, which is discarded: "
                    "it is a function of (arguments, results, attributes) that fills the "
                    "results in, as in results[0][...] = value"
                )

        def blank() -> None:
            for result in results:
                result[...] = 0

        watch = self.watch
        if watch is None:
            call()
        else:
            self.call_watched(watch, call, blank)


def register_target(target: str, handler: Handler | int | HandlerStages, platform: str) -> None:
    """Registers a function as the handler of custom calls to ``target`` on a platform, permanently.

    A second call with an equal function does nothing; raises `AlreadyExists` for another one.
    """
    made = handler if isinstance(handler, int | HandlerStages) else WatchedHandler(target, handler)
    with _lock:
        kept = _handlers.setdefault((platform, target), made)
    found = kept.function if isinstance(kept, WatchedHandler) else kept
    if found is not handler and found != handler:
        raise AlreadyExists(
            f"the custom call target {target!r} has another handler on {platform!r}, "
            f"{found!r:.60}; handlers stay as long as the process. Fix: register this one under a "
            "name of its own"
        )


def register_type(name: str, type_id: int, type_info: int | None, platform: str) -> None:
    """Registers a type of handlers' states on a platform, permanently, by its addresses.

    A second call with equal addresses does nothing; raises `AlreadyExists` for others.
    """
    with _lock:
        found = _types.setdefault((platform, name), (type_id, type_info))
    if found != (type_id, type_info):
        raise AlreadyExists(
            f"the FFI type {name!r} is registered on {platform!r} with another "
            f"{'type_id' if found[0] != type_id else 'type_info'}; types stay as long as the "
            "process. Fix: register this one under a name of its own"
        )


def find_linear_algebra(client: Client) -> LinearAlgebra:
    """Returns the offers of installed packages for a client; of equal names, the first."""
    found = _offered.get(client)
    if found is None:
        lowerings: dict[str, tuple[str, LoweringRule, Record]] = {}
        handlers: dict[str, WatchedHandler] = {}
        for record, rules, functions in collect_offers(
            process_backends().table, "plugrt.linear_algebra", "factorisations", _read_offer,
            client=client,
        ):  # fmt: skip
            for name, rule in rules.items():
                lowerings.setdefault(name, (name, rule, record))
            for target, function in functions.items():
                handlers.setdefault(target, WatchedHandler(target, function))
        found = _offered.setdefault(client, LinearAlgebra(tuple(lowerings.values()), handlers))
    return found


def _read_offer(record: Record, answer: object) -> tuple[Record, Functions, Functions]:
    match answer:
        case (Mapping() as rules, Mapping() as handlers):
            if all(map(callable, (*rules.values(), *handlers.values()))):
                return record, rules, handlers
    raise PluginBroken(
        f"plugrt_linear_algebra returned {answer!r:.60}; two dicts of functions are needed: "
        "lowerings by operation, and handlers by target"
    )


def _handlers_of(
    client: Client, program: Program
) -> dict[str, WatchedHandler | int | HandlerStages]:
    """Returns the handlers for a client's programs, by target; users' take precedence."""
    calls_lapack = _LAPACK in program.code
    if not _handlers and not calls_lapack:
        return {}
    offered = find_linear_algebra(client).handlers if calls_lapack else {}
    here = client.platform
    return {**offered, **{name: x for (where, name), x in [*_handlers.items()] if where == here}}


def add_handlers(client: Client, program: Program) -> None:
    """Registers with a client the handlers that a program may call.

    Registers the types of the platform first, since handlers look up their ids.
    """
    handlers = _handlers_of(client, program)
    if not handlers:
        return
    with _lock:
        here = client.platform
        known = _known.setdefault(client, set())
        types = [name for where, name in _types if where == here and ("type", name) not in known]
        wanted = [target for target in handlers if types or ("handler", target) not in known]
        called = named_targets(program, wanted)
        for name in types if called else ():
            _add(
                client,
                f"the type that was registered for the states of handlers, {name!r},",
                partial(client.register_handler_type, name, *_types[here, name]),
            )
            known.add(("type", name))
        for target in called:
            if ("handler", target) not in known:
                _add(
                    client,
                    f"the handler that was registered for the custom call {target!r}",
                    partial(client.register_handler, target, handlers[target]),
                )
                known.add(("handler", target))


def handlers_in(client: Client, program: Program) -> list[WatchedHandler]:
    """Returns the handlers in Python that a program of a client may call, by name."""
    handlers = _handlers_of(client, program)
    if not handlers:
        return []
    found = [handlers[name] for name in named_targets(program, sorted(handlers))]
    return [x for x in found if isinstance(x, WatchedHandler)]


def _add(client: Client, what: str, register: Callable[[], None]) -> None:
    try:
        register()
    except PjrtError as error:
        raise type(error)(
            f"{what} cannot be had by {client.backend_name}: {error.message}"
        ) from error


def explain_refusal(error: PjrtError) -> PjrtError:
    """Returns a compiler's error; adds an explanation if it lacks a routine of LAPACK."""
    found = re.search(r"\blapack_[a-z]+(_ffi)?\b", error.message)
    if found is None:
        return error
    return type(error)(
        f"{error.message}\nThe program calls {found[0]}, LAPACK as JAX calls it on CPUs: a "
        "function of jaxlib, which the package plugrt-cpu has for devices in the host's memory. "
        'Fix: run the program there (backend="cpu"); or compute with plugrt.array_api.linalg'
    )


# A name inside a longer one does not count: a program that calls ``scale_10`` does not call
# ``scale_1``.
_SYMBOL = rb"[\w$.-]"


def named_targets(program: Program, targets: list[str]) -> list[str]:
    """Returns the names in ``targets`` that a program may call, in their order."""
    code = program.code
    near = [target for target in targets if _has_target(code, target)]
    if not near:
        return near
    if program.format not in ("mlir", "hlo"):  # an executable, in a format of its backend
        return near
    if program.format != "mlir":  # a string of a protocol buffer follows its length
        return [x for x in near if varint(len(x.encode())) + x.encode() in code]
    if code.startswith(mlir_bytecode.MAGIC):
        try:
            strings = set(mlir_bytecode.strings(code))
        except (IndexError, ValueError):  # the compiler reports the fault
            return near
        return [x for x in near if x.encode() in strings]
    return [x for x in near if _is_in_text(code, x)]


def _has_target(code: bytes, target: str) -> bool:
    return target.encode() in code or _escape(target) in code


def _is_in_text(code: bytes, target: str) -> bool:
    name = re.escape(target.encode())
    bare = re.search(rb"(?<!%b)%b(?!%b)" % (_SYMBOL, name, _SYMBOL), code)
    return bare is not None or b'"%b"' % _escape(target) in code


def _escape(target: str) -> bytes:
    r"""Returns a name as MLIR prints it between quotes: ``\22`` for a quote."""
    quoted = bytearray()
    for c in target.encode():
        quoted += b"\\\\" if c == ord("\\") else bytes([c]) if _is_plain(c) else b"\\%02X" % c
    return bytes(quoted)


def _is_plain(c: int) -> bool:
    return 32 <= c < 127 and c != ord('"')
