"""The compiled core, built from ``runtime/core``: what Python uses of it."""

from collections.abc import Callable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

SOURCES: str

class Client:
    """The functions of a library that destroy buffers and launch programs."""

    def __init__(
        self,
        execute: int,
        destroy: int,
        is_deleted: int,
        put: int,
        destroy_event: int,
        await_event: int,
        destroy_error: int,
        free_buffer: Callable[[int], None],
        log_failure: Callable[[str, int], None],
        pointer: Any,
    ) -> None: ...
    pending: bool
    closed: bool
    def refuse(self) -> None: ...
    def abandon(self) -> None: ...

class Buffer:
    _pointer: Any
    _spec: Any

    _dead: Any
    _awaited: bool
    _view_owner: Any
    _reason: str

class Array:
    _shards: Any
    _is_there: bool
    _aval: Any
    _extra: Any

class Aval:
    sharding: Any
    reader: Any
    waiter: Any

class Deletion:
    _taker: str
    _code: Any
    _at: int

class Put:
    def __init__(
        self,
        client: Client,
        spec: Any,
        owner: Any,
        args: int,
        keep: Any,
        dtype: np.dtype[Any],
        number: bool,
    ) -> None: ...
    def __call__(self, value: Any, /) -> Any: ...

class Copy:
    def __init__(
        self,
        client: Client,
        spec: Any,
        owner: Any,
        device: int,
        rank: int,
        copy: int,
        layout: int,
    ) -> None: ...

class ScratchPut:
    def __init__(
        self,
        make: Callable[[], tuple[Any, Any] | None] | None,
        is_ready: Callable[[Any], bool] | None,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        kind: str | None,
        put: Callable[[Any], Any] | None = None,
        late: int = 0,
    ) -> None: ...

class Wait:
    def __init__(self, client: Client, ready_event: int) -> None: ...
    def __call__(self, buffers: Sequence[Any], /) -> bool: ...

class References:
    def __init__(self, client: Client, increase: int, decrease: int, lock: Any) -> None: ...

class End:
    """Calls a function when it ends itself: see `plugrt.native.finalizers`."""

    def __init__(self, work: Callable[[], object]) -> None: ...

class Freer:
    """A destructor of a library, called without Python."""

    def __init__(
        self,
        function: int,
        size: int,
        offset: int,
        settle: Callable[[int, int], object],
        unless: list[bool],
        lock: Any = None,
        waits: bool = False,
    ) -> None: ...
    def __call__(self, handle: int, /) -> None: ...

class Watching:
    """The callback of weak references, which frees what they watched."""

    def __init__(self, watches: dict[int, Any]) -> None: ...
    def __call__(self, watch: Any, /) -> None: ...

class Lock:
    """A lock that its thread may acquire again, as `threading.RLock`."""

    def acquire(self, blocking: bool = True) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> bool: ...
    def __exit__(self, *exception: object) -> None: ...

class ShardsWait:
    def __init__(
        self,
        cls: type,
        raw: type,
        is_deleted: Callable[[Any], bool],
        wait: Callable[[list[Any]], object],
        wait_end: Callable[[Any], object],
    ) -> None: ...
    def __call__(self, shards: Sequence[Any], /) -> bool: ...

class Reader:
    def __init__(
        self,
        references: References,
        functions: tuple[int, ...],
        is_memory: Callable[[int, int], bool],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        views: bool,
        asks_system: bool = False,
    ) -> None: ...
    def __call__(self, buffer: Buffer, /) -> Any: ...

class Executable:
    arity: int
    def __init__(
        self, client: Client, address: int, pointer: Any, parts: int, specs: tuple[Any, ...]
    ) -> None: ...
    def know_ids(self, ids: Iterator[int], /) -> None: ...
    def launch_one_by_one(self, addresses: tuple[int, ...], /) -> None: ...
    def know_donated(self, numbers: tuple[int, ...], reason: str, /) -> None: ...

class Launcher:
    def __init__(
        self, executable: Executable, owner: Any, mark: Callable[[Sequence[Any]], None] | None
    ) -> None: ...
    def __call__(self, arguments: Sequence[Any], /) -> list[Any]: ...

class FunctionLauncher:
    """Launches a program through functions that its backend gives."""

    def __init__(
        self,
        launch: Callable[[list[Any]], Any],
        results: int,
        take: Callable[..., Sequence[Any]] | None,
        take_arguments: tuple[Any, ...],
        argument_class: type | None,
        unless: tuple[Sized, ...],
        explain: Callable[[Exception, list[Any]], Exception] | None,
        donated: tuple[int, ...] = (),
        is_deleted: Callable[[Any], bool] | None = None,
        delete: Callable[[Any], object] | None = None,
        tidy: Callable[[], object] | None = None,
    ) -> None: ...

class ShardsLauncher:
    """Launches a program on several devices through functions that its backend gives."""

    def __init__(
        self,
        owner: Any,
        cls: type,
        parameters: tuple[Any, ...],
        place: Any,
        results: tuple[tuple[Any, Any], ...],
        launches: tuple[tuple[Any, Any, Any], ...],
        take: Callable[..., Sequence[Any]],
        take_token: Callable[[Any], Any],
        make_wait: Callable[[Any], Callable[[], object]],
        is_deleted: Callable[[Any], bool],
        prepare: Callable[[], object],
        lock: Any,
        unless: tuple[Sized, ...],
        explain: Callable[[Exception], Exception],
        tidy: Callable[[], object],
        donated: tuple[int, ...] = (),
        delete: Callable[[Any], object] | None = None,
    ) -> None: ...
    def __call__(self, arguments: Sequence[Any], /) -> list[Any]: ...

class BoundedLauncher:
    """Launches a program when few enough launches are under way."""

    def __init__(
        self,
        launcher: Launcher | ShardsLauncher,
        queue: Any,
        lock: Any,
        bound: int,
        exchanges: bool,
        unless: tuple[Any, ...],
    ) -> None: ...

class Events:
    """The end of a launch on each of its devices."""

    def __call__(self) -> None: ...

class FunctionReader:
    """Reads arrays through functions that their backend gives."""

    def __init__(
        self,
        held_class: type,
        is_ready: Callable[[Any], bool],
        wait: Callable[[Any], object],
        lock: Any,
        view: Callable[[Any], Any],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        unless: tuple[Sized, ...],
        format: str | None = None,
    ) -> None: ...

class Tree:
    def __init__(
        self, leaves: int, example: Any, unflatten: Callable[[Sequence[Any]], Any] | None
    ) -> None: ...

class Outputs:
    def __init__(
        self,
        avals: tuple[Any, ...],
        origins: tuple[int, ...],
        constants: tuple[Any, ...],
        share: Callable[[Any, Any], Any],
        tree: Tree | None,
    ) -> None: ...

class Runner:
    def __init__(
        self,
        launcher: Launcher | FunctionLauncher,
        arity: int,
        kept: tuple[int, ...],
        puts: tuple[Put | None, ...],
        constants: tuple[Any, ...],
        donated: tuple[int, ...],
        taker: str,
        outputs: Outputs,
        slow: Callable[[Sequence[Any]], Any],
        explain: Callable[[Sequence[Any], Exception], Any],
    ) -> None: ...
    def __call__(self, values: Sequence[Any], /) -> Any: ...

class Calls:
    _runners: dict[Any, Any]
    def _set_statics(self, numbers: frozenset[int], names: frozenset[str], /) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def set_buffer_class(
    cls: type, pointer_at: Callable[[int], Any], address_of: Callable[[Any], int], /
) -> None: ...
def make_array(held: Any, aval: Any, /) -> Any: ...
def replace_held(array: Any, held: Any, /) -> None: ...
def set_array_class(cls: type, /) -> None: ...
def set_aval_class(cls: type, /) -> None: ...
def set_read_hooks(
    host: Callable[[Any], Any],
    array: Callable[..., Any],
    buffer: Callable[..., Any],
    unless: tuple[Sized, ...],
    one_device: type,
    /,
) -> None: ...
def set_deletion_class(cls: type, our_files: dict[str, bool], /) -> None: ...
def set_call_hooks(
    filter: Callable[[Exception], None],
    static_key: Callable[[Any], Any],
    classes: dict[type, Any],
    order_keys: Callable[[Sequence[Any]], list[int]],
    /,
) -> None: ...
def set_dtypes(ndarray: type, dtypes: tuple[np.dtype[Any], ...], /) -> None: ...
def set_host_hooks(avals: Callable[[Sequence[Any]], Sequence[Any] | None], /) -> None: ...
def set_trace_state(state: object, /) -> None: ...
def set_settings_hooks(attributes: dict[str, Any], token: Callable[[], Any], /) -> None: ...
def set_finalizer_hooks(
    collecting: list[bool],
    here: Any,
    descend: Callable[[], object],
    is_interruption: Callable[[Exception], bool],
    main: int,
    /,
) -> None: ...
def finish_pending() -> None: ...
def stop_finalizers() -> None: ...
def change_surroundings(object: Any, name: str, value: Any, /) -> None: ...
def forget_runners(runners: dict[Any, Any], /) -> None: ...
def put_quickly(known: dict[Any, Any], value: Any, target: Any, /) -> Any: ...
def call_holding(
    held: tuple[Any, ...],
    taken: tuple[Any, ...],
    function: Callable[..., Any],
    /,
    *arguments: Any,
) -> tuple[int, Any]: ...
def collect_held(tree: Any, /) -> tuple[list[Any], list[Any]] | None: ...
def delete_later(buffer: Any, /) -> bool: ...
def forget_result(buffer: Any, /) -> None: ...
def is_readable(address: int, /) -> bool | None: ...
def capsule_destructor() -> int: ...
def tensor_deleter(address: int, /) -> int: ...
def catching(function: Callable[..., Any], settle: Callable[..., Any], /) -> Callable[..., Any]: ...
def calls_under_way() -> int: ...
def forget_calls() -> None: ...
def guard(address: int, kind: int, label: str) -> int | None: ...
def take_caught(address: int) -> str | None: ...
