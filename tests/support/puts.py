"""What a test puts on devices, as the cpu client sees it; the fixture is ``puts``."""

from __future__ import annotations

from typing import Any


class Puts(list[tuple[Any, Any]]):
    """The (array, device) pairs that were put, one call a list."""

    calls = 0
