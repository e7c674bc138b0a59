"""`surroundings`: how that on which a thread's calls depend is set: its trace and its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Surroundings:
    """Sets attributes of the objects that hold them.

    The compiled core keeps what it has found there last, so that it is told of each change, by a
    function of its own: nothing can come between the change and what it is told.
    """

    __slots__ = ("change",)

    def __init__(self) -> None:
        self.change: Callable[[Any, str, Any], object] = setattr
        """Sets the attribute of that name; the compiled core puts its own function here."""


surroundings = Surroundings()
