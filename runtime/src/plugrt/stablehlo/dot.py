"""Graphviz DOT text: nodes of a few lines, clusters within clusters, edges."""

from __future__ import annotations

from collections.abc import Sequence

_MOST = 60
"""How many characters of a line are shown."""


class DotWriter:
    """Writes one directed graph, statement after statement; labels may contain any text."""

    def __init__(self, name: str) -> None:
        self._lines = [
            f"digraph {quote(name)} {{",
            f"  graph [label={quote(name)}, labelloc=t, fontname=Helvetica, compound=true];",
            "  node [shape=box, style=filled, fontname=Helvetica, fontsize=10];",
            "  edge [fontname=Helvetica, fontsize=8, arrowsize=0.6];",
        ]
        self._edges: list[str] = []
        """Written last: an edge within a cluster makes its nodes parts of the cluster."""
        self._depth = 1
        self._nodes = self._clusters = 0

    def node(self, lines: Sequence[str], *, role: str = "operation", tooltip: str = "") -> str:
        """Adds a node and returns its identifier; ``role`` is a key of `_ROLES`."""
        name = f"n{self._nodes}"
        self._nodes += 1
        label = r"\n".join(escape(shorten(line)) for line in lines if line)
        attributes = f'label="{label}"{_ROLES[role]}'
        if tooltip:
            attributes += f", tooltip={quote(tooltip)}"
        self._add(f"{name} [{attributes}];")
        return name

    def edge(self, source: str, target: str, label: str = "", *, returned: bool = False) -> None:
        """Adds an edge; dashed for a value that a region or a function returns."""
        attributes = [f"label={quote(label)}"] if label else []
        if returned:
            attributes += ["style=dashed", "constraint=false"]
        shown = f" [{', '.join(attributes)}]" if attributes else ""
        self._edges.append(f"  {source} -> {target}{shown};")

    def open_cluster(self, label: str) -> None:
        """Begins a cluster, which contains all that is added until `close_cluster`."""
        self._add(f"subgraph cluster_{self._clusters} {{")
        self._clusters += 1
        self._depth += 1
        self._add(f'label={quote(shorten(label))}; labeljust=l; color="#8a94a6"; style=rounded;')

    def close_cluster(self) -> None:
        """Ends the last cluster that was begun."""
        self._depth -= 1
        self._add("}")

    def text(self) -> str:
        """Returns the whole graph."""
        return "\n".join([*self._lines, *self._edges, "}", ""])

    def _add(self, statement: str) -> None:
        self._lines.append("  " * min(self._depth, 20) + statement)


_ROLES = {
    "operation": ', fillcolor="#f5f7fa"',
    "constant": ', fillcolor="#fdf3d8"',
    "parameter": ', shape=ellipse, fillcolor="#dcecfb"',
    "result": ', shape=ellipse, fillcolor="#dff3e3"',
}


def shorten(line: str) -> str:
    """Cuts a line to at most `_MOST` characters."""
    return line if len(line) <= _MOST else line[: _MOST - 1] + "…"


def quote(text: str) -> str:
    """Returns a DOT string that displays the text."""
    return f'"{escape(text)}"'


def escape(text: str) -> str:
    r"""Returns the text escaped for use between the quotation marks of a DOT string.

    Graphviz reads escapes such as ``\n`` and HTML's entities in labels; characters that cannot be
    printed, such as NUL, are written as Python writes them.
    """
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return shown.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
