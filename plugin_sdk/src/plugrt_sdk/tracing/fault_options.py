"""The faults that `plugrt trace` injects, as users write them and as the tracer reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from plugrt.capi.abi import declarations
from plugrt.errors import InvalidArgument

_FAILURE = re.compile(r"(?:PJRT_)?(?P<function>\w+)(?::(?P<nth>\d+|\*))?(?:=(?P<code>\w+))?")


def read_failure(text: str) -> str:
    """Returns ``FUNCTION[:N][=CODE]`` with numbers for N and CODE.

    ``N`` counts the calls of the function from 1 (1 if left out); ``*`` is every call, as 0 is for
    the tracer. ``CODE`` is one of PJRT's names or numbers, INTERNAL if left out. Raises
    `InvalidArgument` for anything else, and for a function that cannot return an error.
    """
    match = _FAILURE.fullmatch(text)
    if match is None:
        raise InvalidArgument(
            f"--fail {text}: FUNCTION[:N][=CODE] was expected, such as Client_Compile:2=INTERNAL"
        )
    name = match["function"]
    known = {entry.name: entry for entry in _functions()}
    if name not in known:
        raise InvalidArgument(f"--fail {text}: {_unknown('function', name, known)}")
    if not known[name].returns_error:
        raise InvalidArgument(f"--fail {text}: PJRT_{name} returns nothing, so it cannot fail")
    nth = match["nth"] or "1"
    if nth == "0":
        raise InvalidArgument(f"--fail {text}: calls are counted from 1; * is every call")
    return f"{name}:{0 if nth == '*' else nth}={_code(text, match['code'] or 'INTERNAL')}"


def _functions() -> Iterable[declarations.Entry]:
    yield from declarations.functions()
    for table in declarations.EXTENSIONS.values():
        yield from declarations.entries(table)


def _code(text: str, code: str) -> int:
    names = declarations.ENUMS["Error_Code"]
    if code.isdecimal():
        return int(code)  # any: hosts must handle codes that PJRT lacks
    if code.upper() not in names[1:]:
        raise InvalidArgument(f"--fail {text}: {_unknown('error code', code, names[1:])}")
    return names.index(code.upper())


def read_extension(name: str) -> str:
    """Returns the name of an extension; raises `InvalidArgument` for an unknown one."""
    names = declarations.ENUMS["Extension_Type"]
    if name in names or name.isdecimal():
        return name
    raise InvalidArgument(f"--hide-extension {name}: {_unknown('extension', name, names)}")


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"the PJRT C API has no {what} {name}{hint}"
