"""The constants of the standard, as Python floats."""

from __future__ import annotations

import math

e = math.e
inf = math.inf
nan = math.nan
pi = math.pi
newaxis = None
"""Inserts a dimension when used in an index: ``x[:, newaxis]``."""
