"""`create_client`, with the key-value callbacks of its processes, and `create_topology`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from plugrt.base.xla_environment import reserve_threads
from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.client.client import Client
from plugrt.capi.library.callback_threads import mark_callback
from plugrt.capi.library.stream_copies import StreamCopies
from plugrt.capi.loading.library import Library, load_library
from plugrt.errors import DeadlineExceeded, InvalidArgument, NotFound, PjrtError
from plugrt.interface import OptionValue
from plugrt.lifetime.callback_exits import take_exits
from plugrt.settings.option_types import forced_cpu_devices

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData
    from plugrt.capi.client.topology import Topology


class KeyValueStore(Protocol):
    """The store of a distributed runtime; called concurrently from any thread."""

    def get(self, key: str, timeout_ms: int) -> bytes:
        """Waits for the value and returns it; `DeadlineExceeded` after ``timeout_ms``."""

    def try_get(self, key: str) -> bytes | None:
        """Returns the value, or None if it is not set."""

    def put(self, key: str, value: bytes) -> None:
        """Sets the value."""


class KeyValueCallbacks:
    """The three C callbacks of one store. Must outlive the client."""

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store
        self._lent: dict[int, CData] = {}
        self._deleter = ffi.callback("void(*)(char*)", self._take_back)
        self.get = self._callback("PJRT_KeyValueGetCallback", self._get)
        self.try_get = self._callback("PJRT_KeyValueTryGetCallback", self._try_get)
        self.put = self._callback("PJRT_KeyValuePutCallback", self._put)

    def _callback(self, c_type: str, function: Callable[[CData], object]) -> CData:
        def run(args: CData) -> object:
            try:
                function(args)
            except PjrtError as error:
                return self._refuse(args, error.code, error.message)
            except Exception as error:  # noqa: BLE001 - C cannot unwind; the library gets the error
                return self._refuse(args, 2, f"{type(error).__name__}: {error}")
            return ffi.NULL

        return ffi.callback(c_type, mark_callback(run))

    @staticmethod
    def _refuse(args: CData, code: int, message: str) -> object:
        text, size = c_values.chars(message)
        return args.callback_error[0](code, text, size)

    def _share(self, args: CData, value: bytes) -> None:
        copy = ffi.new("char[]", value)
        self._lent[int(ffi.cast("uintptr_t", copy))] = copy
        args.value, args.value_size = copy, len(value)
        args.value_deleter_callback = self._deleter

    def _take_back(self, value: object) -> None:
        self._lent.pop(int(ffi.cast("uintptr_t", value)), None)

    def _get(self, args: CData) -> None:
        key = c_values.text(args.key, args.key_size)
        try:
            self._share(args, self._store.get(key, args.timeout_in_ms))
        except TimeoutError as error:
            raise DeadlineExceeded(f"no value came for the key {key!r}: {error}") from error

    def _try_get(self, args: CData) -> None:
        key = c_values.text(args.key, args.key_size)
        value = self._store.try_get(key)
        if value is None:
            raise NotFound(f"there is no key {key!r}")
        self._share(args, value)

    def _put(self, args: CData) -> None:
        key = c_values.text(args.key, args.key_size)
        self._store.put(key, c_values.data(args.value, args.value_size))


_USUAL_CPU_DEVICES = 4
"""The default in ``xla/pjrt/c/pjrt_c_api_cpu_internal.cc``."""


def _library(path_or_library: str | os.PathLike[str] | Library) -> Library:
    if isinstance(path_or_library, Library):
        return path_or_library
    return load_library(path_or_library)


def create_client(
    path_or_library: str | os.PathLike[str] | Library,
    options: Mapping[str, OptionValue],
    *,
    name: str,
    kv_store: KeyValueStore | None = None,
    option_types: Mapping[str, type] | None = None,
    copies: StreamCopies | None = None,
) -> Client:
    """Starts a library and returns a client of it; a second call returns another client.

    ``name`` is the backend's name in messages. ``kv_store`` lets the clients of several processes
    find each other. ``option_types`` maps options to the type that they must have: several
    libraries end the process on a wrong one, so it is checked here. ``copies`` makes the copies
    that Python functions need when programs call them on devices with their own memory; without it
    they are refused there.

    Raises `PluginBroken` or `PluginIncompatible` when the library cannot be used, `InvalidArgument`
    for an option of a wrong type, and the `PjrtError` of a failing start.
    """
    check_options(options, option_types, name)
    array, count, _keep = c_values.named_values(options)
    library = _library(path_or_library)
    take_exits(library.path)
    library.initialize()
    inputs: dict[str, object] = {"create_options": array if count else ffi.NULL}
    callbacks = None if kv_store is None else KeyValueCallbacks(kv_store)
    if callbacks is not None:
        inputs |= {
            "kv_get_callback": callbacks.get,
            "kv_put_callback": callbacks.put,
            "kv_try_get_callback": callbacks.try_get,
        }
    with reserve_threads(_cpu_devices(options)):
        args = library.call("Client_Create", num_options=count, **inputs)
    return Client(library, args.client, name, keep=[callbacks], copies=copies)


def _cpu_devices(options: Mapping[str, OptionValue]) -> int:
    """Returns how many devices XLA's CPU client would create with these options."""
    stated = options.get("cpu_device_count")
    return (
        stated if isinstance(stated, int) else forced_cpu_devices(os.environ) or _USUAL_CPU_DEVICES
    )


def create_topology(
    path_or_library: str | os.PathLike[str] | Library,
    name: str,
    options: Mapping[str, OptionValue],
) -> Topology:
    """Returns a topology of a library, for compiling without the devices.

    What ``name`` and ``options`` mean is the library's own; see its plugin.
    """
    array, count, _keep = c_values.named_values(options)
    library = _library(path_or_library)
    library.initialize()
    text, size = c_values.chars(name)
    args = library.call(
        "TopologyDescription_Create",
        topology_name=text,
        topology_name_size=size,
        create_options=array if count else ffi.NULL,
        num_options=count,
    )
    from plugrt.capi.client.topology import Topology

    return Topology(library, args.topology)


def topology_from_bytes(
    path_or_library: str | os.PathLike[str] | Library, serialized: bytes
) -> Topology:
    """Returns a topology that `Topology.serialize` saved (PJRT 0.75 and later)."""
    library = _library(path_or_library)
    library.initialize()
    content, size = c_values.chars(serialized)
    args = library.call(
        "TopologyDescription_Deserialize",
        serialized_topology=content,
        serialized_topology_size=size,
    )
    from plugrt.capi.client.topology import Topology

    return Topology(library, args.topology)


# Workaround for xla-cpu-option-type
OPTION_TYPES: dict[str, type] = {"cpu_device_count": int}
"""Options whose wrong type ends the process."""

_KINDS: dict[type, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (float, np.floating),
    bool: (bool, np.bool_),
    str: (str,),
    list: (list, tuple),
}


def check_options(
    options: Mapping[str, object], types: Mapping[str, type] | None, name: str
) -> None:
    """Raises `InvalidArgument` for an option whose value is not of the type it must have.

    ``types`` maps option names to int, float, bool, str or list, beyond `OPTION_TYPES`.
    """
    for option, expected in {**OPTION_TYPES, **(types or {})}.items():
        if option not in options:
            continue
        value = options[option]
        right = isinstance(value, _KINDS[expected])
        if expected is not bool and isinstance(value, bool | np.bool_):
            right = False
        if not right:
            raise InvalidArgument(
                f"the create option {option!r} of {name!r} must be of type {expected.__name__}; "
                f"it is {value!r} ({type(value).__name__})"
            )
