"""`KNOWN_DTYPES`: the dtypes of NumPy values that the compiled core reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

import ml_dtypes
import numpy as np

from plugrt.native.native_core import core

KNOWN_DTYPES = (
    *map(np.dtype, "fildILqQ?hHbBeFD"),
    *(
        dtype
        for name, cls in vars(ml_dtypes).items()
        if isinstance(cls, type) and issubclass(cls, np.generic)
        if (dtype := np.dtype(cls)).kind in "Vf" and "complex" not in name
    ),
)
"""The most frequent first: the core searches in this order."""

if core is not None:
    core.set_dtypes(np.ndarray, KNOWN_DTYPES)


class extended(np.generic):
    """The scalar type of dtypes that NumPy does not have."""


class prng_key(extended):
    """The scalar type of the dtypes of random keys."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyDtype:
    """The dtype of arrays of random keys, with the attributes of NumPy's dtypes that plugrt reads.

    The buffer of an array of keys is uint32, with an additional last dimension of a key's words.
    `KEY_DTYPES` holds the only object of each dtype.
    """

    name: str
    impl: str
    """JAX's name of the keys' generator."""
    words: int
    """The number of 32-bit words of a key."""

    kind: ClassVar[str] = "k"
    char: ClassVar[str] = "k"
    type: ClassVar[type] = prng_key
    names: ClassVar[None] = None
    isnative: ClassVar[bool] = True

    @property
    def itemsize(self) -> int:
        """Bytes of a key."""
        return 4 * self.words

    def __reduce__(self) -> tuple[object, ...]:
        return key_dtype, (self.name,)

    def __repr__(self) -> str:
        return self.name


KEY_DTYPES = {
    dtype.name: dtype
    for dtype in (
        KeyDtype("key<fry>", "threefry2x32", 2),
        KeyDtype("key<rbg>", "rbg", 4),
        KeyDtype("key<urbg>", "unsafe_rbg", 4),
    )
}


def key_dtype(name: str) -> KeyDtype:
    """Returns the dtype of keys by name, such as ``"key<fry>"``."""
    return KEY_DTYPES[name]


def is_key_dtype(dtype: object) -> TypeGuard[KeyDtype]:
    """Whether it is a dtype of random keys."""
    return type(dtype) is KeyDtype


def buffer_type(
    shape: tuple[int, ...], dtype: np.dtype[Any] | KeyDtype
) -> tuple[tuple[int, ...], Any]:
    """Returns shape and dtype of an array's buffer; these differ only for arrays of keys."""
    if is_key_dtype(dtype):
        return (*shape, dtype.words), _UINT32
    return shape, dtype


_UINT32: np.dtype[Any] = np.dtype(np.uint32)
