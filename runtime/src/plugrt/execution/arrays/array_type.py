"""`ArrayMeta`: the metaclass of `Array`; tracers are instances, ``Array()`` is refused."""

from __future__ import annotations

from typing import Never, NoReturn

from plugrt.errors import NotAnArray


class ArrayMeta(type):
    """Lets ``isinstance(x, Array)`` hold for traced arrays as well, as in JAX.

    It also refuses ``Array()``, so that the class itself has no ``__init__``: `blank` in
    `plugrt.execution.arrays.array` is faster without.
    """

    tracer_class: type | None = None

    def __instancecheck__(cls, instance: object) -> bool:
        found = type(instance)
        return (
            found is cls
            or issubclass(found, cls)
            or (cls.tracer_class is not None and issubclass(found, cls.tracer_class))
        )

    def __call__(cls, *_: Never, **__: Never) -> NoReturn:  # to type checkers, an error
        raise_not_made_so("plugrt.Array is not called directly")


def raise_not_made_so(what: str) -> NoReturn:
    """Raises what says how arrays are made."""
    raise NotAnArray(f"{what}; use plugrt.array_api.asarray(...) or plugrt.device_put(...)")
