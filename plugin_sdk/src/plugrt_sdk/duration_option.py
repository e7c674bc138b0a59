"""`Duration`: the type of a command's option that is a length of time."""

from __future__ import annotations

from typing import Any

import click


class Duration(click.FloatRange):
    """A number from ``min`` to ``max``, so that a wait for it ends.

    ``click.FloatRange`` lets NaN through, which is in no range and compares with nothing.
    """

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Returns the number; raises click's usage error for any other text, NaN, or out of the
        range.
        """
        number: float = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is not a duration.", param, ctx)
        return number
