"""HTML elements from Python: whatever is not an element itself is escaped."""

from __future__ import annotations

from html import escape

from plugrt.errors import escape_controls

_EMPTY = frozenset({"meta", "br"})


class Element(str):
    """A string of HTML; other strings are text, to be escaped."""

    __slots__ = ()


def element(name: str, /, *content: object, **attributes: object) -> Element:
    """Returns an element; ``class_`` is the attribute ``class``, and ``_`` in names is ``-``."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items()
    )
    if name in _EMPTY:
        return Element(f"<{name}{shown}>")
    return Element(f"<{name}{shown}>{join(*content)}</{name}>")


def join(*content: object) -> Element:
    """Returns elements and texts one after the other."""
    return Element("".join(c if isinstance(c, Element) else text(c) for c in content))


def text(value: object) -> str:
    """Returns what shows a value as text; see `escape_controls`."""
    return escape(escape_controls(str(value)))
