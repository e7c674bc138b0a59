"""Key-value callbacks through which clients of several processes exchange addresses."""

from __future__ import annotations

from typing import Any, Protocol

from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.library.callback_threads import mark_callback
from plugrt.errors import DeadlineExceeded, NotFound, PjrtError


class KeyValueStore(Protocol):
    """The store of a distributed runtime; called concurrently from any thread."""

    def get(self, key: str, timeout_ms: int) -> bytes:
        """Waits for the value and returns it; `DeadlineExceeded` after ``timeout_ms``."""

    def try_get(self, key: str) -> bytes | None:
        """Returns the value if it is there."""

    def put(self, key: str, value: bytes) -> None:
        """Sets the value."""


class KeyValueCallbacks:
    """The three C callbacks of one store. Must outlive the client."""

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store
        self._lent: dict[int, Any] = {}
        self._deleter = ffi.callback("void(*)(char*)", self._take_back)
        self.get = self._callback("PJRT_KeyValueGetCallback", self._get)
        self.try_get = self._callback("PJRT_KeyValueTryGetCallback", self._try_get)
        self.put = self._callback("PJRT_KeyValuePutCallback", self._put)

    def _callback(self, c_type: str, function: Any) -> Any:
        def run(args: Any) -> Any:
            try:
                function(args)
            except PjrtError as error:
                return self._refuse(args, error.code, error.message)
            except Exception as error:  # noqa: BLE001 - C cannot unwind; the library gets the error
                return self._refuse(args, 2, f"{type(error).__name__}: {error}")
            return ffi.NULL

        return ffi.callback(c_type, mark_callback(run))

    @staticmethod
    def _refuse(args: Any, code: int, message: str) -> Any:
        text, size = c_values.chars(message)
        return args.callback_error[0](code, text, size)

    def _share(self, args: Any, value: bytes) -> None:
        copy = ffi.new("char[]", value)
        self._lent[int(ffi.cast("uintptr_t", copy))] = copy
        args.value, args.value_size = copy, len(value)
        args.value_deleter_callback = self._deleter

    def _take_back(self, value: Any) -> None:
        self._lent.pop(int(ffi.cast("uintptr_t", value)), None)

    def _get(self, args: Any) -> None:
        key = c_values.text(args.key, args.key_size)
        try:
            self._share(args, self._store.get(key, args.timeout_in_ms))
        except TimeoutError as error:
            raise DeadlineExceeded(f"no value came for the key {key!r}: {error}") from error

    def _try_get(self, args: Any) -> None:
        key = c_values.text(args.key, args.key_size)
        value = self._store.try_get(key)
        if value is None:
            raise NotFound(f"there is no key {key!r}")
        self._share(args, value)

    def _put(self, args: Any) -> None:
        key = c_values.text(args.key, args.key_size)
        self._store.put(key, c_values.data(args.value, args.value_size))
