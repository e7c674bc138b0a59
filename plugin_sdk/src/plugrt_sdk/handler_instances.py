"""`instantiate`: the handler of one custom call of a program that is being compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plugrt.interface import Handler


def instantiate(handler: Handler, attributes: Mapping[str, Any]) -> Handler:
    """Returns the callable for one custom call, made from a registered handler.

    Call it once for each custom call of a program, when `Backend.compile` reads it: a handler in C
    may have a stage that makes a state for all launches of the executable. The state is deleted
    with the returned callable. A handler without stages is returned unchanged. Raises the handler's
    own error.
    """
    make = getattr(handler, "instantiate", None)
    if make is None:
        return handler
    made: Handler = make(attributes)
    return made
