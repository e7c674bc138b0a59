"""Sealed files with a changed header and a valid checksum."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Iterator
from typing import Any

_DIGEST = 65
"""The length of a checksum as text, and of the end of its line."""
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 7, 8, 255, 2**31 - 1, 2**31, 2**40, 2**62, 2**63, -(2**63),
    2**64, 2**200, 0.5, -0.0, float("nan"), float("inf"), 1e300, "", "x", "\0", "\ud800", "0", "é",
    "float32", "float64", "int32", "int4", "bool", "void", "object", "datetime64[s]", "str",
    "float128", "float6_e2m3fn", "V8", "f4", "device", "pmap", "tiles", "mesh", "positions",
    "result", "argument", "constant", "literal", "unpinned_host", "pinned_host", "AAAA", "CAE=",
    "{1,0}", "{0:T(8,128)}", [], [0], [0, 0], [1, 0], [-1], [[]], [[0]], [[0, 1]], {}, {"x": 0},
    [None], ["x"], [2**40], [2**40, 2**40], [0, 2**62], [1] * 70, [[[[[[[[[[1]]]]]]]]]],
)  # fmt: skip


def split(sealed: bytes) -> tuple[bytes, Any, bytes]:
    """Returns the first line, the header, and the contents of a sealed file."""
    magic, _, rest = sealed.partition(b"\n")
    header, _, contents = rest[_DIGEST:].partition(b"\n")
    return magic + b"\n", json.loads(header), contents


def join(magic: bytes, header: Any, contents: bytes) -> bytes:
    """Returns a sealed file with any header."""
    line = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = line + b"\n" + contents
    return magic + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def rewrite_header(sealed: bytes, old: bytes, new: bytes) -> bytes:
    """Returns a sealed file with a part of its header's text replaced."""
    magic, _, rest = sealed.partition(b"\n")
    line, _, contents = rest[_DIGEST:].partition(b"\n")
    assert old in line
    return join(magic + b"\n", line.replace(old, new, 1), contents)


def changed(sealed: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yields copies of a file that differ in one to three places of the header."""
    magic, header, contents = split(sealed)
    chance = random.Random(seed)
    for _ in range(count):
        made = [copy.deepcopy(header)]
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            _change(made, chance)
        yield join(magic, made[0], contents)


def _places(container: Any) -> Iterator[tuple[Any, Any]]:
    """Yields each value within a container, as (its container, its key or index)."""
    items = container.items() if isinstance(container, dict) else enumerate(container)
    for key, value in items:
        yield container, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _change(made: list[Any], chance: random.Random) -> None:
    places = [*_places(made)]
    container, key = chance.choice(places)
    value = container[key]
    how = chance.randrange(8)
    if how == 0 and container is not made:
        del container[key]
    elif how == 1:
        extra = copy.deepcopy(chance.choice(VALUES))
        if isinstance(container, dict):
            container[chance.choice(("x", "", "name", "dtype", "shape"))] = extra
        elif container is not made:
            container.insert(key, copy.deepcopy(chance.choice((value, extra))))
    elif how == 2:
        other, name = chance.choice(places)
        container[key] = copy.deepcopy(other[name])
    elif how == 3 and isinstance(value, list):
        chance.shuffle(value)
    elif how in (3, 4) and type(value) in (int, float):
        container[key] = value + chance.choice((-1, 1, 2, 2**32))
    elif how in (3, 4) and type(value) is bool:
        container[key] = not value
    elif how in (3, 4) and isinstance(value, str) and value:
        at = chance.randrange(len(value))
        container[key] = value[:at] + chance.choice("A0 \n\0é/=") + value[at + 1 :]
    else:
        container[key] = copy.deepcopy(chance.choice(VALUES))
