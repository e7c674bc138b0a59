"""`StreamCopies`: how a plugin copies between memory of its devices and the host's, on streams.

A library says where an argument of a custom call is, and on which stream its program runs. How to
copy from there is the vendor's driver's to know, and a plugin's to say
(`plugrt.plugins.LibraryPlugin.stream_copies`): with it Python functions that programs call get
arrays of the host's memory (`plugrt.capi.extensions.ffi_staging`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class StreamCopies(Protocol):
    """Copies on a device's stream; any class with these methods is one.

    Addresses are those of a buffer's data in ``XLA_FFI_Buffer``, streams what
    ``XLA_FFI_Stream_Get`` gives (a ``CUstream`` for CUDA), both as integers. The methods are called
    on threads of the library, several at once; a method that waits must release the interpreter's
    lock. What fails raises a `PjrtError` that says what was copied: its text and its code are those
    of the launch's error.

    A library knows a function by its name, for all its clients: the copies of the client with which
    it was registered serve the others, so that they keep nothing of one client.
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
