"""Sets environment variables that a library needs while it starts, unless the user has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plugrt.base import files
from plugrt.base.xla_environment import set_variables
from plugrt.plugins import vendors


@contextmanager
def set_start_variables(library: str) -> Iterator[None]:
    """Sets a library's `vendors.START_VARIABLES` on a machine without its device."""
    names = sorted(files.names_of(library) & vendors.START_VARIABLES.keys())
    wanted = vendors.START_VARIABLES[names[0]] if names else None
    if wanted is None or any(h.label == wanted.device for h in vendors.hardware_seen()):
        yield
        return
    with set_variables(wanted.variables):
        yield
