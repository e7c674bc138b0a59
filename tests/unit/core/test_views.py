"""The compiled core lends memory to NumPy: kept while viewed, and released once."""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from plugrt.capi.abi._abi import ffi
from plugrt.capi.loading.owned_handles import free_group
from support.library_calls import BYTES, LibraryCalls
from support.native_core import runs_in_c

pytestmark = runs_in_c


def _with_handle(library: LibraryCalls) -> Any:
    """Adds attributes for Python methods to the buffers of a library; returns the library."""
    library.spec.handle = handle = SimpleNamespace(
        core=library.core,
        lock=threading.RLock(),
        exiting=[],
        free_buffer=lambda _: library.alive.subtract(["buffer"]),
    )
    return handle


def _alive(library: LibraryCalls) -> tuple[int, int, int]:
    return tuple(library.alive[kind] for kind in ("buffer", "reference", "event"))  # type: ignore[return-value]


def test_memory_is_lent_until_the_last_array_over_it_is_freed() -> None:
    library = LibraryCalls()
    handle = _with_handle(library)
    reader = library.reader(handle.lock, lambda *_: True, views=True)
    x = library.buffer()
    first, second = reader(x), reader(x)
    assert bytes(first) == BYTES
    assert not first.flags.writeable
    assert first.ctypes.data == second.ctypes.data
    with pytest.raises(ValueError, match="WRITEABLE"):
        first.flags.writeable = True
    assert _alive(library) == (1, 2, 0)
    slice_of_first = first[3:]
    del x, first
    gc.collect()
    assert _alive(library) == (1, 2, 0)
    del second
    assert _alive(library) == (1, 1, 0)
    assert bytes(slice_of_first) == BYTES[3:]
    library.failing.add("Buffer_DecreaseExternalReferenceCount")
    del slice_of_first
    assert _alive(library) == (0, 1, 0)
    assert [name for name, _ in library.logged] == ["Buffer_DecreaseExternalReferenceCount"]
    abandoned = reader(library.buffer())
    library.core.abandon()
    calls = library.calls.total()
    del abandoned
    assert library.calls.total() == calls


def test_a_view_that_cannot_be_made_gives_back_what_it_took() -> None:
    library = LibraryCalls()
    handle = _with_handle(library)
    answers = [False, *[True] * 8]
    reader = library.reader(handle.lock, lambda *_: answers.pop(0), views=True)
    x = library.buffer()
    assert reader(x) is None
    assert _alive(library) == (1, 0, 0)
    needed = ("Buffer_ReadyEvent", "Event_Await", "Buffer_UnsafePointer")
    for name in (*needed, "Buffer_OnDeviceSizeInBytes", "Buffer_IncreaseExternalReferenceCount"):
        library.failing, x._awaited = {name}, False
        assert reader(x) is None, name
        assert _alive(library) == (1, 0, 0), name
    library.failing.clear()
    x._pointer = None
    assert reader(x) is None
    del x
    assert _alive(library) == (0, 0, 0)


def test_a_lent_buffer_has_one_owner_in_python_too() -> None:
    """If core and Python each owned a view, the buffer would be destroyed twice."""
    library = LibraryCalls()
    handle = _with_handle(library)
    reader = library.reader(handle.lock, lambda *_: True, views=True)
    x = library.buffer()
    lent = reader(x)
    owner = x._share(ffi.cast("PJRT_Buffer*", x._pointer))
    assert reader(x) is None, "the next view is Python's"
    del x, lent
    assert _alive(library) == (1, 0, 0)
    del owner
    assert _alive(library) == (0, 0, 0)


def test_a_buffer_that_was_lent_is_destroyed_at_the_end_unless_it_still_is() -> None:
    library = LibraryCalls()
    handle = _with_handle(library)
    reader = library.reader(handle.lock, lambda *_: True, views=True)
    x = library.buffer()
    assert bytes(reader(x)) == BYTES
    still = library.buffer()
    lent = reader(still)
    for buffer in (x, still):
        buffer.release_at_exit()
    free_group(handle.exiting)
    assert _alive(library) == (1, 1, 0)
    assert bytes(lent) == BYTES
    del x, still, buffer, lent
    assert _alive(library) == (1, 0, 0), "what is left at the end is the system's"
