"""The signatures of operations for callers: `ArrayLike` parameters, `Array` results."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable


def public_signature(body: Callable[..., object]) -> inspect.Signature:
    """Returns the signature of an operation with this body.

    A body's parameters are tracers; callers pass whatever `plugrt.typing.ArrayLike` has (for a
    random ``key`` a `plugrt.typing.KeyArray`, no scalar), and get `plugrt.Array`. ``help``,
    ``inspect.signature`` and the stubs of the public namespaces (written by
    ``docs/generate/stubs.py``) take it from here.
    """
    signature = inspect.signature(body)
    return signature.replace(
        parameters=[
            p.replace(
                annotation=_with(p.annotation, "KeyArray" if p.name == "key" else "ArrayLike")
            )
            for p in signature.parameters.values()
        ],
        return_annotation=_with(signature.return_annotation, "Array"),
    )


def _with(annotation: object, name: str) -> object:
    """Returns an annotation, a string as the body's module has it, with tracers called ``name``."""
    return re.sub(r"\bTracer\b", name, annotation) if isinstance(annotation, str) else annotation
