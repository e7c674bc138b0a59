"""Sets environment variables that a library needs while it starts, unless the user has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from plugrt.plugins import vendors


@contextmanager
def set_variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Sets variables that are not set, and removes them afterwards.

    A library reads them in its initialisation; processes started later must not inherit them.
    """
    ours = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in ours.items():
            if os.environ.get(name) == value:
                del os.environ[name]


@contextmanager
def set_start_variables(library: str) -> Iterator[None]:
    """Sets a library's `vendors.START_VARIABLES` on a machine without its device."""
    wanted = vendors.START_VARIABLES.get(os.path.basename(library))
    if wanted is None or any(h.label == wanted.device for h in vendors.hardware_seen()):
        yield
        return
    with set_variables(wanted.variables):
        yield
