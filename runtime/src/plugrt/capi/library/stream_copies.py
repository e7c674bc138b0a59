"""`StreamCopies`: copies between a plugin's device memory and host memory, on streams.

A library provides the address of an argument of a custom call and the stream of its program. Only
the vendor's driver can copy from there, so a plugin provides the copies
(`plugrt.plugins.LibraryPlugin.stream_copies`). Python functions that programs call then get arrays
in host memory (`plugrt.capi.extensions.ffi_staging`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class StreamCopies(Protocol):
    """Copies on a device's stream; any class with these methods is one.

    Addresses are of a buffer's data in ``XLA_FFI_Buffer``, streams are the results of
    ``XLA_FFI_Stream_Get`` (a ``CUstream`` for CUDA), both as integers. The methods are called on
    threads of the library, several at once; a method that waits must release the interpreter's
    lock. A failure raises a `PjrtError` that describes the copy; the launch's error has its text
    and code.

    A library registers a function by name for all its clients: the copies of the registering client
    serve the others, too, so they must not depend on one client.
    """

    def copy_to_host(self, target: npt.NDArray[np.uint8], source: int, stream: int) -> None:
        """Begins to copy ``target.nbytes`` bytes, at least one, from a device's memory.

        ``target`` is contiguous, and kept until `wait` has returned.
        """

    def copy_to_device(self, target: int, source: npt.NDArray[np.generic], stream: int) -> None:
        """Begins to copy ``source.nbytes`` bytes, at least one, to a device's memory.

        ``source`` is contiguous, of any dtype, and kept unchanged until `wait` has returned.
        """

    def wait(self, stream: int) -> None:
        """Waits until all that was begun on a stream has ended, copies and programs."""
