"""The operations of `plugrt.lax` as bodies use them: on tracers.

Their public types, which tell callers of arrays, name no tracers.
"""

from __future__ import annotations

from typing import Any

from plugrt import lax as _lax

lax: Any = _lax
