"""Names and docstrings of operations that a factory function makes from a table."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from plugrt.tracing.argument_checks import KIND_WORDS


def kind_words(kinds: str) -> str:
    """Returns the names of dtype kinds (letters of ``biufc``): ``integers, floats``."""
    words = [KIND_WORDS[kind] for kind in kinds]
    both = [KIND_WORDS["i"], KIND_WORDS["u"]]
    return ", ".join(words).replace(", ".join(both), "integers")


def name_operation(
    body: Callable[..., object], module: str, name: str, summary: str, details: str
) -> None:
    """Gives an operation's body its name, and a docstring as if it had been written out."""
    body.__name__ = body.__qualname__ = name
    body.__module__ = module
    text = f"{details} As ``jax.lax.{name}``."
    filled = textwrap.fill(text, 96, break_long_words=False, break_on_hyphens=False)
    body.__doc__ = f"{summary}\n\n{textwrap.indent(filled, '    ')}\n"
