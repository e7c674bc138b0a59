"""`check_options`: type-checks create options before they are passed to a library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from plugrt.errors import InvalidArgument

# Workaround for xla-cpu-option-type
OPTION_TYPES: dict[str, type] = {"cpu_device_count": int}
"""Options whose wrong type ends the process."""

_KINDS: dict[type, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (float, np.floating),
    bool: (bool, np.bool_),
    str: (str,),
    list: (list, tuple),
}


def check_options(options: Mapping[str, Any], types: Mapping[str, type] | None, name: str) -> None:
    """Raises `InvalidArgument` for an option whose value is not of the type it must have.

    ``types`` maps option names to int, float, bool, str or list, beyond `OPTION_TYPES`.
    """
    for option, expected in {**OPTION_TYPES, **(types or {})}.items():
        if option not in options:
            continue
        value = options[option]
        right = isinstance(value, _KINDS[expected])
        if expected is not bool and isinstance(value, bool | np.bool_):
            right = False
        if not right:
            raise InvalidArgument(
                f"the create option {option!r} of {name!r} must be of type {expected.__name__}; "
                f"it is {value!r} ({type(value).__name__})"
            )
