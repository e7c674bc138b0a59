"""`client_checks`: the checks of a client, as pytest runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from plugrt.interface import Capabilities, Client
from plugrt_sdk.testing import arrays, declarations, launches, ownership
from plugrt_sdk.testing.subject import Subject

Check = Callable[[Subject], None]


def _checks_of(module: ModuleType) -> list[Check]:
    """Returns the public functions that a module defines, in its order."""
    return [
        found
        for name, found in vars(module).items()
        if callable(found) and found.__module__ == module.__name__ and not name.startswith("_")
    ]


CHECKS: Sequence[Check] = [
    check for module in (arrays, launches, ownership, declarations) for check in _checks_of(module)
]
"""The checks, each a function whose docstring says in one sentence what must hold."""


def client_checks(
    factory: Callable[[], Client], *, declared: Capabilities | None = None
) -> list[Any]:
    """Returns the checks as parameters for `pytest.mark.parametrize`: functions without arguments.

    ``factory`` makes a client, with two devices or more where the backend can have them. It is
    called once for most of the checks, when the first of them runs, and again by those that close
    their client. ``declared`` replaces the client's own capabilities where these are incomplete: a
    C API cannot state all that the exported client declares.
    """
    import pytest  # the conformance kit's processes use the checks without it

    subject = Subject(factory, declared)
    return [pytest.param(partial(check, subject), id=check.__name__) for check in CHECKS]
