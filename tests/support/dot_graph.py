"""Reads the part of Graphviz's DOT language that plugrt writes, strictly; runs ``dot``."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\\n]|\\.)*")|(->|[{}\[\]=;,])|([A-Za-z_0-9.]+))')
_ESCAPE = re.compile(r"\\(.)|&amp;")


@dataclass
class Graph:
    """Nodes with their attributes, edges, and the label of each cluster with its nodes."""

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    clusters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Each cluster's name, and the labels of the clusters that it is in, its own last."""
    inside: dict[str, str] = field(default_factory=dict)
    """Each node's innermost cluster."""

    def label(self, node: str) -> str:
        return self.nodes[node]["label"]

    def labels(self) -> list[str]:
        return [node["label"] for node in self.nodes.values()]

    def find(self, words: str) -> str:
        """Returns the one node whose label has the words."""
        [found] = [name for name, node in self.nodes.items() if words in node["label"]]
        return found

    def frames(self) -> list[tuple[str, ...]]:
        return list(self.clusters.values())

    def frame(self, node: str) -> tuple[str, ...]:
        return self.clusters[self.inside[node]]

    def edge(self, source: str, target: str) -> dict[str, str]:
        [found] = [a for s, t, a in self.edges if (s, t) == (source, target)]
        return found


def read_dot(text: str) -> Graph:
    """Returns the graph; raises `AssertionError` for text outside of the language."""
    tokens = _tokens(text)
    assert tokens[0] == "digraph"
    assert tokens[1].startswith('"')
    graph, at = Graph(), 3
    open_clusters: list[str] = []
    labels: list[str] = []
    assert tokens[2] == "{"
    while open_clusters or tokens[at] != "}":
        word = tokens[at]
        if word == "}":
            open_clusters.pop()
            labels.pop()
            at += 1
        elif word == "subgraph":
            open_clusters.append(tokens[at + 1])
            labels.append("")
            assert tokens[at + 1] not in graph.clusters, "one name for two clusters"
            graph.clusters[tokens[at + 1]] = ()
            assert tokens[at + 2] == "{"
            at += 3
        elif tokens[at + 1] == "=":
            assert tokens[at + 3] == ";"
            if word == "label":
                labels[-1] = _shown(tokens[at + 2])
                graph.clusters[open_clusters[-1]] = tuple(labels)
            at += 4
        elif tokens[at + 1] == "->":
            target = tokens[at + 2]
            attributes, at = _attributes(tokens, at + 3)
            assert not open_clusters, "an edge in a cluster would draw its nodes into it"
            graph.edges.append((word, target, attributes))
        else:
            attributes, at = _attributes(tokens, at + 1)
            if word not in ("graph", "node", "edge"):
                assert word not in graph.nodes, f"{word} is there twice"
                graph.nodes[word] = attributes
                if open_clusters:
                    graph.inside[word] = open_clusters[-1]
    assert at == len(tokens) - 1, "something follows the graph"
    for source, target, _ in graph.edges:
        assert source in graph.nodes
        assert target in graph.nodes
    return graph


def laid_out(text: str) -> str:
    """Returns ``dot``'s messages for a graph on stderr; None without Graphviz."""
    done = subprocess.run(
        ["dot", "-Tplain"],
        input=text, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("graph ")
    return done.stderr


HAS_DOT = shutil.which("dot") is not None


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found, f"not DOT: {text[at : at + 60]!r}"
        tokens.append(found[0].strip())
        at = found.end()
    return tokens


def _attributes(tokens: list[str], at: int) -> tuple[dict[str, str], int]:
    """Returns the attributes in brackets, if there are any, and the end of the statement."""
    found: dict[str, str] = {}
    if tokens[at] == "[":
        at += 1
        while tokens[at] != "]":
            assert tokens[at + 1] == "="
            found[tokens[at]] = _shown(tokens[at + 2])
            at += 3
            if tokens[at] == ",":
                at += 1
        at += 1
    assert tokens[at] == ";", tokens[at - 3 : at + 3]
    return found, at + 1


def _shown(token: str) -> str:
    """Returns the text that Graphviz shows for a string."""
    if not token.startswith('"'):
        return token
    return _ESCAPE.sub(
        lambda m: "&" if m[1] is None else "\n" if m[1] == "n" else m[1], token[1:-1]
    )
