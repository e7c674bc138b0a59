"""XLA's log level while a library of XLA's is loaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLE = "TF_CPP_MIN_LOG_LEVEL"


@contextmanager
def few_log_lines() -> Iterator[None]:
    """Keeps INFO lines away, as JAX does, unless the user has set TF_CPP_MIN_LOG_LEVEL.

    A library reads the variable when it is loaded and never again, so that it is set for the
    block only, and what the user starts later does not inherit it.
    """
    ours = _VARIABLE not in os.environ
    if ours:
        os.environ[_VARIABLE] = "1"
    try:
        yield
    finally:
        if ours:
            os.environ.pop(_VARIABLE, None)
