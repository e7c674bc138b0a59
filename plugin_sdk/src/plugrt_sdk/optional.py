"""`refuse_left_out`: the error of an optional method that a backend does not have."""

from __future__ import annotations

from typing import NoReturn

from plugrt.errors import Unimplemented


def refuse_left_out(backend: object, method: str) -> NoReturn:
    """Raises the error of an optional method that a backend's class does not override."""
    raise Unimplemented(f"{type(backend).__qualname__} lacks the optional method {method}")
