"""`Api`: one version of the PJRT C API, wherever it was read."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct; `normalize` spells its ``type``."""

    name: str
    type: str


@dataclass(slots=True)
class Api:
    """One version of the PJRT C API. Names have the prefix ``PJRT_``, as in the header."""

    source: str
    version: tuple[int, ...]
    """Major and minor; of an extension its one number; empty: not stated."""
    table: str = "PJRT_Api"
    """The struct with the functions: an extension's is named after it."""
    functions: list[str] = field(default_factory=list)
    """The table, in the order of its slots; a field that is no function has a dot in its name."""
    signatures: dict[str, str] = field(default_factory=dict)
    """Function, or callback of the host's, to ``result(parameters)``."""
    structs: dict[str, list[Field]] = field(default_factory=dict)
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    """Structs that are named and not described: handles, which older libraries keep closed."""

    @property
    def title(self) -> str:
        """The version, and where it was read."""
        return f"{self.number} ({self.source})" if self.version else self.source

    @property
    def number(self) -> str:
        """The version as a text."""
        return ".".join(map(str, self.version))

    def restrict(self, opaque: Collection[str] = ()) -> Api:
        """Returns the part of the API that the table refers to, not through structs in ``opaque``.

        The other declarations belong to extensions, whose headers use the types of the API.
        """
        found = {"PJRT_Api_Version"}
        waiting = ["PJRT_Extension_Base", *(f"{name}_Args" for name in self.functions)]
        while waiting:
            name = waiting.pop()
            if name not in found and name not in opaque:
                found.add(name)
                types = " ".join(field.type for field in self.structs.get(name, ()))
                waiting += re.findall(r"\bPJRT_\w+", types + self.signatures.get(name, ""))
        structs = {name: fields for name, fields in self.structs.items() if name in found}
        enums = {name: values for name, values in self.enums.items() if name in found}
        return replace(self, structs=structs, enums=enums)


def normalize(type_text: str) -> str:
    """Returns a C type in one spelling: types of equal spelling are the same to callers.

    Callers do not depend on ``const``, ``struct`` and the names of a callback's parameters. A
    ``bool`` is spelt ``uint8_t``, since a library may write any value into its byte.
    """
    text = re.sub(r"\b(const|struct|enum)\b", " ", type_text)
    text = re.sub(r"\bbool\b", "uint8_t", text)
    text = re.sub(r"\s*([*(),;{}\[\]])\s*", r"\1", " ".join(text.split()))
    return re.sub(r"(?<=[\w*]) ?\b\w+(?=[,)])", _without_name, text) if "(" in text else text


def _without_name(match: re.Match[str]) -> str:
    """Drops a parameter's name, but keeps a type that stands alone."""
    before = match.string[: match.start()]
    alone = before.endswith(("(", ",")) or not before
    return match[0] if alone else ""
