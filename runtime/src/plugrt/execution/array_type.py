"""`ArrayMeta`: what ``isinstance(x, Array)`` and ``Array()`` mean."""

from __future__ import annotations

from typing import Any, NoReturn

from plugrt.errors import NotAnArray


class ArrayMeta(type):
    """Lets ``isinstance(x, Array)`` hold for traced arrays as well, as in JAX.

    It also refuses ``Array()``, so that the class itself has no ``__init__``: `blank` in
    `plugrt.execution.array` is faster without.
    """

    kin: type | None = None

    def __instancecheck__(cls, instance: object) -> bool:
        kind = type(instance)
        return (
            kind is cls
            or issubclass(kind, cls)
            or (cls.kin is not None and issubclass(kind, cls.kin))
        )

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        raise NotAnArray(
            "plugrt.Array is not called directly; use plugrt.array_api.asarray(...) or "
            "plugrt.device_put(...)"
        )
