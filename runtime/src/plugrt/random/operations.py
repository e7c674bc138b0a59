"""`plugrt.lax` typed for use on tracers, inside operation bodies.

Their public types, which tell callers of arrays, name no tracers.
"""

from __future__ import annotations

from typing import Any

from plugrt import lax as _lax

lax: Any = _lax
