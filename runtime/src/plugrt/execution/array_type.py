"""What ``isinstance(x, Array)`` means."""

from __future__ import annotations


class ArrayMeta(type):
    """Lets ``isinstance(x, Array)`` hold for traced arrays as well, as in JAX."""

    kin: type | None = None

    def __instancecheck__(cls, instance: object) -> bool:
        kind = type(instance)
        return (
            kind is cls
            or issubclass(kind, cls)
            or (cls.kin is not None and issubclass(kind, cls.kin))
        )
