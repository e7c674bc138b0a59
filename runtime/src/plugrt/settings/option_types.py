"""The types of option values: how each is parsed from text and checked.

`forced_cpu_devices` parses the one option that may also come from XLA_FLAGS.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any, TypeVar

from plugrt.base import files
from plugrt.errors import ConfigError
from plugrt.interface import Device, OptionValue
from plugrt.settings.option import OptionType

T = TypeVar("T")

_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE = frozenset({"0", "false", "f", "no", "n", "off"})


def _parse_boolean(text: str) -> bool:
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError


def _require_instance(*types: type[T]) -> Any:
    def check(value: object) -> T:
        # bool is a subclass of int, but no valid count or text.
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise ValueError(f"a {type(value).__name__} was given")
        return value

    return check


def _int64(value: str | int) -> int:
    """Returns a whole number that fits 64 bits, as in the C structs of libraries."""
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{number} does not fit 64 bits")
    return number


def integer(minimum: int | None = None) -> OptionType[int]:
    """A whole number of 64 bits, not below ``minimum``."""

    def check(value: object) -> int:
        number: int = _require_instance(int)(value)
        if minimum is not None and number < minimum:
            raise ValueError
        return _int64(number)

    accepts = "a whole number" + ("" if minimum is None else f" from {minimum}")
    return OptionType("int", accepts, lambda text: check(int(text)), check)


def count(minimum: int, unset: int) -> OptionType[int | None]:
    """A whole number from ``minimum``, or the number that means "unset" in JAX."""
    whole = integer(minimum)

    def check(value: object) -> int | None:
        return None if value == unset else whole.check(value)

    return OptionType(
        "int", f"{whole.accepts}; {unset} is unset", lambda text: check(int(text)), check
    )


def number(minimum: float = 0.0, maximum: float = math.inf) -> OptionType[float]:
    """A finite number from ``minimum`` to ``maximum``."""

    def check(value: object) -> float:
        found = float(_require_instance(int, float)(value))
        if not minimum <= found <= maximum or math.isinf(found):
            raise ValueError
        return found

    accepts = f"a number from {minimum:g}" + ("" if maximum == math.inf else f" to {maximum:g}")
    return OptionType("float", accepts, lambda text: check(float(text)), check)


def seconds() -> OptionType[float]:
    """A duration in seconds, not above `threading.TIMEOUT_MAX`."""
    return number(0.0, math.floor(threading.TIMEOUT_MAX))


def choice(*words: str) -> OptionType[str]:
    """One of ``words``; case does not matter."""

    def check(value: object) -> str:
        word: str = _require_instance(str)(value).lower()
        if word not in words:
            raise ValueError
        return word

    return OptionType("word", " | ".join(words), check, check)


def _parse_integers(text: str) -> tuple[int, ...] | None:
    if text.lower() == "all":
        return None
    return tuple(_int64(item) for item in text.split(","))


def _check_integers(value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, tuple | list) or any(type(item) is not int for item in value):
        raise ValueError
    return tuple(value)


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _check_names(value: object) -> tuple[str, ...]:
    if not isinstance(value, tuple | list) or any(type(item) is not str for item in value):
        raise ValueError
    return tuple(value)


def option_value(text: str) -> OptionValue:
    """Returns text as the value of a create option: bool, int, float, list of ints, or text.

    Quotes prevent conversion: ``"1"`` is the text 1. The PJRT C API is typed, and real libraries
    abort on a value of the wrong type.
    """
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"[+-]?\d+", text):
        return _int64(text)
    if re.fullmatch(r"[+-]?\d+(\s*,\s*[+-]?\d+)+", text):
        return [_int64(item) for item in text.split(",")]
    try:
        return float(text)
    except ValueError:
        return text


def _check_folder(value: object) -> str:
    """Returns a path unchanged; refuses a URL, which would become a folder named ``gs:``."""
    path: str = _require_instance(str)(value)
    if files.is_url(path):
        raise ValueError(
            "plugrt keeps files in folders of this machine only. Fix: name such a folder, one "
            "that the storage is mounted on, say"
        )
    return path


def _parse_create_options(text: str) -> dict[str, OptionValue]:
    found: dict[str, OptionValue] = {}
    for item in filter(None, map(str.strip, text.split(";"))):
        key, colon, value = item.partition(":")
        if not colon or not key.strip():
            raise ValueError(f"the item {item!r} is not key:value")
        found[key.strip()] = option_value(value)
    return found


def _parse_named_options(text: str) -> dict[str, dict[str, OptionValue]]:
    found: dict[str, dict[str, OptionValue]] = {}
    for item in filter(None, map(str.strip, text.split(";"))):
        name, _, rest = item.partition(":")
        if not name.strip() or ":" not in rest:
            raise ValueError(f"the item {item!r} is not plugin:key:value")
        found.setdefault(name.strip(), {}).update(_parse_create_options(rest))
    return found


def _check_named_options(value: object) -> dict[str, dict[str, OptionValue]]:
    if not isinstance(value, dict) or any(type(name) is not str for name in value):
        raise ValueError
    return {name: _check_create_options(options) for name, options in value.items()}


def _check_create_options(value: object) -> dict[str, OptionValue]:
    if not isinstance(value, dict):
        raise ValueError
    for key, item in value.items():
        listed = isinstance(item, list) and all(type(part) is int for part in item)
        if not isinstance(key, str) or not (listed or isinstance(item, str | bool | int | float)):
            raise ValueError(f"the item {key!r}: {item!r}")
        for part in item if listed else [item]:
            if isinstance(part, int):
                _int64(part)
    return dict(value)


def _check_gpu_shape(value: object) -> str:
    shape: str = _require_instance(str)(value)
    if not re.fullmatch(r"\s*0*[1-9]\d{0,8}\s*(x\s*0*[1-9]\d{0,8}\s*){2}", shape, re.ASCII):
        raise ValueError
    return shape


def _check_device(value: object) -> str | Device:
    if isinstance(value, Device):
        return value
    name: str = _require_instance(str)(value)
    if not re.fullmatch(r"[^:]+(:\d+)?", name):
        raise ValueError
    return name


BOOLEAN: OptionType[bool] = OptionType(
    "bool", "1 or 0 (true, yes, on; false, no, off)", _parse_boolean, _require_instance(bool)
)
TEXT: OptionType[str] = OptionType("text", "text", str, _require_instance(str))


class Secret(str):
    """Text that messages, listings and `plugrt doctor` show as ``***``."""

    __slots__ = ()

    def __str__(self) -> str:
        return "***"

    __repr__ = __str__


SECRET: OptionType[str] = OptionType(
    "text", "text", Secret, lambda value: Secret(_require_instance(str)(value))
)
LOWER: OptionType[str] = OptionType(
    "text", "text; upper case is read as lower", str.lower, _require_instance(str)
)
FOLDER: OptionType[str] = OptionType(
    "folder", "a folder (~ is your home)", _check_folder, _check_folder
)
GPU_SHAPE: OptionType[str] = OptionType(
    "shape", "slices x hosts a slice x devices a host, such as 2x1x4", _check_gpu_shape,
    _check_gpu_shape,
)  # fmt: skip
DEVICE: OptionType[str | Device] = OptionType(
    "device", "a platform (cpu), or a platform and an index (cpu:1); in Python also a device",
    _check_device, _check_device,
)  # fmt: skip
INTEGERS: OptionType[tuple[int, ...] | None] = OptionType(
    "ints", "all, or whole numbers separated by commas", _parse_integers, _check_integers
)
_DUMP_MODES = ("stablehlo", "hlo", "optimized")
_DUMP_MODES_OF_JAX = ("jaxpr", "eqn_count_pprof")


def _check_dump_modes(value: object) -> tuple[str, ...]:
    modes = _check_names(value)
    if unknown := [m for m in modes if m not in (*_DUMP_MODES, *_DUMP_MODES_OF_JAX)]:
        raise ValueError(f"there is no {', '.join(map(repr, unknown))}")
    return tuple(mode for mode in modes if mode in _DUMP_MODES)


def _parse_dump_modes(text: str) -> tuple[str, ...]:
    return _check_dump_modes(_parse_names(text))


def _check_functions(value: object) -> tuple[Callable[..., object], ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError("several functions are given as a tuple")
    for function in value:
        if not callable(function):
            raise ValueError(f"{function!r:.60} is no function")
    return tuple(value)


Lowerings = tuple[tuple[str, str, Callable[..., object]], ...]
"""Platform, name of an operation, and the function that lowers it there."""


def _check_lowerings(value: object) -> Lowerings:
    if isinstance(value, Mapping):
        if wrong := [p for p, of_platform in value.items() if not isinstance(of_platform, Mapping)]:
            raise ValueError(f"the platform {wrong[0]!r:.60} has no dict of functions")
        value = [(p, op, f) for p, of_platform in value.items() for op, f in of_platform.items()]
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError("it is not a dict of platforms")
    for each in value:
        match each:
            case (str(), str(), function) if callable(function):
                hash(function)  # TypeError: it is a part of the keys of caches
            case _:
                raise ValueError(
                    f"{each!r:.100} is not a tuple of a platform, an operation and a function"
                )
    named = [each[:2] for each in value]
    if twice := [names for names in named if named.count(names) > 1]:
        raise ValueError(f"{twice[0][1]!r} has two functions for {twice[0][0]!r}")
    return tuple(tuple(each) for each in value)


def _parse_lowerings(text: str) -> Lowerings:
    return _check_lowerings(_import_function(text))


def _parse_functions(text: str) -> tuple[Callable[..., object], ...]:
    return _check_functions([_import_function(name) for name in _parse_names(text)])


def _import_function(name: str) -> object:
    module, _, attribute = name.partition(":")
    try:
        return attrgetter(attribute)(import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{name!r} is not a module:function ({error})") from error


NAMES: OptionType[tuple[str, ...]] = OptionType(
    "names", "names separated by commas", _parse_names, _check_names
)
DUMP_MODES: OptionType[tuple[str, ...]] = OptionType(
    "names", "of stablehlo, hlo and optimized, separated by commas", _parse_dump_modes,
    _check_dump_modes,
)  # fmt: skip
FUNCTIONS: OptionType[tuple[Callable[..., object], ...]] = OptionType(
    "functions", "module:function, separated by commas (in Python functions)", _parse_functions,
    _check_functions,
)  # fmt: skip
LOWERINGS: OptionType[Lowerings] = OptionType(
    "lowerings", "module:dict (in Python a dict of platforms to dicts of functions by operation)",
    _parse_lowerings, _check_lowerings,
)  # fmt: skip
CREATE_OPTIONS: OptionType[dict[str, OptionValue]] = OptionType(
    "options", "key:value;key:value (in Python a dict)", _parse_create_options,
    _check_create_options,
)  # fmt: skip


NAMED_OPTIONS: OptionType[dict[str, dict[str, OptionValue]]] = OptionType(
    "named options", "plugin:key:value;plugin:key:value (in Python a dict of dicts)",
    _parse_named_options, _check_named_options,
)  # fmt: skip


_FORCED_DEVICES = r"--xla_force_host_platform_device_count[= ](\S+)"


def forced_cpu_devices(environ: Mapping[str, str]) -> int | None:
    """Returns the number of virtual devices in XLA_FLAGS, None if it is not set there."""
    flags = environ.get("XLA_FLAGS", "")
    if not (flags and (found := re.findall(_FORCED_DEVICES, flags))):
        return None
    if not found[-1].isdecimal() or int(found[-1]) < 1:
        raise ConfigError(
            f"XLA_FLAGS has --xla_force_host_platform_device_count={found[-1]}, which cannot be "
            "understood; accepted: a whole number from 1"
        )
    return int(found[-1])  # XLA also uses the last one
