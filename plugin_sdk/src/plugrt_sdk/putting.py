"""`put_array`: puts a host array by the backend's method for its memory and layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import Unimplemented
from plugrt.interface import HostBufferSemantics, Layout
from plugrt_sdk.compiled import Handle
from plugrt_sdk.device import BackendMemory
from plugrt_sdk.returns import require_handle
from plugrt_sdk.session import Session


def put_array(
    session: Session,
    array: npt.NDArray[Any],
    memory: BackendMemory,
    semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
) -> Handle:
    """Returns the handle of a host array in a memory: aliased where host and backend allow it."""
    backend, device = session.backend, memory.device
    # `reshape` makes an array object with separate flags.
    host = np.ascontiguousarray(array, native_dtype(array.dtype)).reshape(array.shape)
    if semantics is not HostBufferSemantics.MUTABLE_ZERO_COPY:
        host.flags.writeable = False
    if memory is not device.default_memory():
        handle = backend.put_in_memory(host, device.id, memory.kind)
        return require_handle(backend, "put_in_memory", handle)
    if semantics >= HostBufferSemantics.IMMUTABLE_ZERO_COPY and "alias" in session.methods:
        handle = backend.alias(host, device.id)
        if handle is not None:
            return handle
    host.flags.writeable = False
    return require_handle(backend, "put", backend.put(host, device.id))


def put_in_layout(
    session: Session, array: npt.NDArray[Any], memory: BackendMemory, layout: Layout
) -> Handle:
    """Puts a host array on a device in the layout ``layout`` and returns its handle."""
    if memory is not memory.device.default_memory():
        raise Unimplemented(
            f"{session.backend_name}: a layout in the memory {memory.kind!r}, not the default one"
        )
    host = np.ascontiguousarray(array, native_dtype(array.dtype)).reshape(array.shape)
    host.flags.writeable = False
    backend = session.backend
    handle = backend.put_in_layout(host, memory.device.id, layout)
    return require_handle(backend, "put_in_layout", handle)


def native_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns a dtype in the machine's byte order: NumPy's own object, which DLPack knows."""
    return dtype if dtype.isnative else np.dtype(dtype.newbyteorder("=").char)
