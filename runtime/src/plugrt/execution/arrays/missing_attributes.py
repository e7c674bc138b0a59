"""`Missing`: an attribute of JAX's or NumPy's arrays that these lack; its error has a hint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

_ON_THE_HOST = "numpy.{name}, with numpy.asarray(x), computes it on the host"
INSTEAD: Mapping[str, str] = {
    "aval": "an array's type is x.shape, x.dtype, x.weak_type and x.sharding",
    "clone": "it is x.copy()",
    "conjugate": "it is x.conj()",
    "device_buffer": "it is x.addressable_data(0)",
    "device_buffers": "they are [shard.data for shard in x.addressable_shards]",
    "diagonal": "write x[plugrt.array_api.arange(n), plugrt.array_api.arange(n)]",
    "flat": "it is x.ravel()",
    "platform": "it is x.device.platform, or that of one of x.devices()",
    "ptp": "write x.max() - x.min()",
    "searchsorted": "it is plugrt.array_api.searchsorted(x, values)",
    "trace": "write plugrt.array_api.sum(plugrt.array_api.linalg.diagonal(x))",
    "traceback": "no array knows where it was made; plugrt.config.debug_nans finds NaNs' origins",
    "view": "it is plugrt.lax.bitcast_convert_type(x, dtype)",
    **dict.fromkeys(("argpartition", "choose", "compress"), _ON_THE_HOST),
    "byteswap": "arrays have the byte order of the machine",
}
"""Name to the hint."""


class Missing:
    """A descriptor whose reading is an AttributeError with a hint.

    A method ``__getattr__`` of arrays would slow the reading of every attribute.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: object | None, cls: type) -> NoReturn:
        name = self._name
        text = f"{cls.__name__!r} object has no attribute {name!r}: {INSTEAD[name]}"
        raise AttributeError(text.format(name=name), name=name, obj=cls if owner is None else owner)
