"""`OptionValue`, and `HostBufferSemantics`: the caller's promises about host memory."""

from __future__ import annotations

import enum

OptionValue = str | bool | int | float | list[int]
"""The type of a create option or an attribute (``PJRT_NamedValue``)."""


class HostBufferSemantics(enum.IntEnum):
    """The caller's promise about host memory that it passes to `Client.buffer_from_host`.

    The values equal ``PJRT_HostBufferSemantics``.
    """

    IMMUTABLE_ONLY_DURING_CALL = 0
    """The source may change as soon as the call returns: the backend copies at once."""
    IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1
    """The source must not change until the buffer's transfer is complete."""
    IMMUTABLE_ZERO_COPY = 2
    """The source never changes while the buffer lives, and the backend may alias it."""
    MUTABLE_ZERO_COPY = 3
    """As above, and the backend may write to it (a donated computation may reuse it)."""
