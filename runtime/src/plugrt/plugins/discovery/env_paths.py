"""Parses ``PJRT_NAMES_AND_LIBRARY_PATHS`` into a `Record` for each library."""

from __future__ import annotations

import os

from plugrt.base import files
from plugrt.errors import ConfigError
from plugrt.interface import OptionValue
from plugrt.plugins.plugin import NAME, NAME_RULE
from plugrt.plugins.record import Record, Source, State
from plugrt.settings.option_types import CREATE_OPTIONS

VARIABLE = "PJRT_NAMES_AND_LIBRARY_PATHS"
_KEYS = ("library_path", "create_options")


def parse_libraries(text: str, separator: str = os.pathsep) -> list[Record]:
    """Returns a record for each item; a malformed item is a broken record with the fault.

    An item is ``name:path`` (``name;path`` on Windows). A name contains no separator; a path may.
    Items are separated by commas; empty ones are ignored, and so is one that has the name, library
    and options of another, however its path is spelt.
    """
    found: list[Record] = []
    for position, item in enumerate(text.split(","), 1):
        if any(part.strip() for part in item.partition(separator)):
            record = _record(item.strip(), position, separator)
            if not any(_are_the_same(record, known) for known in found):
                found.append(record)
    return found


def _are_the_same(one: Record, other: Record) -> bool:
    if not (one.library and other.library):
        return one.value == other.value
    paths = {files.real_path(record.library) for record in (one, other)}
    return one.name == other.name and one.options == other.options and len(paths) == 1


def _record(item: str, position: int, separator: str) -> Record:
    name, found, path = (part.strip() for part in item.partition(separator))
    fault = _explain_malformed(item, separator) if not found or not path or not name else ""
    if not fault and not NAME.fullmatch(name):
        fault = f"names its plugin {name!r}, which cannot be used in JAX_PLATFORMS; {NAME_RULE}"
    if fault:
        record = Record(f"item {position}", Source.ENVIRONMENT, value=item, named=False)
        reason = f"{VARIABLE}: item {position}, {item!r}, {fault}"
        record.set_state(State.BROKEN, reason, f"correct {VARIABLE}")
    else:
        record = Record(name, Source.ENVIRONMENT, value=item, library=path, priority=400)
    record.order = position
    if path.endswith(".json") and not fault:
        try:
            record.library, record.options = read_json(path)
        except ConfigError as error:
            reason = f"{VARIABLE} item {position}: {error}"
            record.set_state(State.BROKEN, reason, f"correct {path}")
    return record


def _explain_malformed(item: str, separator: str) -> str:
    other = ":" if separator == ";" else ";"
    hint = f" (the separator here is {separator!r}, not {other!r})" if other in item else ""
    return f"is not of the form name{separator}path{hint}; items are separated by commas"


def explain_missing(record: Record) -> str:
    """Returns why the library of a record is no file; empty if it is one.

    A bare file name is left to the system's loader, which searches for it.
    """
    fault = files.why_no_file(record.library) if os.sep in record.library else ""
    return fault and f"the library {record.library} that {VARIABLE} names for it {fault}"


def read_json(path: str) -> tuple[str, dict[str, OptionValue]]:
    """Returns ``library_path`` and ``create_options`` of a file; `ConfigError` if malformed."""
    try:
        content = files.read_json(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    library = content.get(_KEYS[0]) if isinstance(content, dict) else None
    if not isinstance(library, str) or not library:
        raise ConfigError(f"{path} must hold an object whose library_path is the library's path")
    for key in content.keys() - set(_KEYS):
        from difflib import get_close_matches  # only for errors

        close = get_close_matches(key, _KEYS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ConfigError(f"{path} has the key {key!r}{hint} (there are {' and '.join(_KEYS)})")
    options = content.get(_KEYS[1])
    try:
        return library, CREATE_OPTIONS.check({} if options is None else options)
    except ValueError as error:
        raise ConfigError(
            f"{path}: create_options must be an object of text, bool, int, float or lists of "
            f"ints ({error or options!r})"
        ) from error
