"""`behaviour`: the mark of tests that ``docs/behaviour.md`` lists, by row and by platform."""

from __future__ import annotations

import pytest


def behaviour(row: int, holds: str, *, jax: str = "same") -> pytest.MarkDecorator:
    """Returns the mark of a test that shows a behaviour of dispatch.

    ``row`` is a number of ``docs/data/behaviour.toml``; ``holds`` its sentence on the page, in
    present tense, without a full stop; ``jax`` JAX's behaviour if that differs, and why. All three
    are literals: the page reads them from the source. A test without a function for some platform
    skips there, and the reason is on the page.

    After adding or changing one: ``docs/generate/behaviour.py record FILE`` runs it on each
    platform and writes the page.
    """
    return pytest.mark.behaviour(row, holds, jax=jax)
