"""HTML from Python: elements, and a page of them; other objects are escaped."""

from __future__ import annotations

import base64
import hashlib
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
    """Returns a value as text, without control characters; see `escape_controls`."""
    return escape(escape_controls(str(value)))


STYLE = """
:root { color-scheme: light dark; --text: #1c2430; --back: #ffffff; --soft: #5b6675;
  --line: #d8dee6; --card: #f5f7fa; --good: #18794e; --bad: #b42318; --mid: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --back: #14181f; --soft: #9aa6b5;
  --line: #333c48; --card: #1d232c; --good: #5bd69a; --bad: #ff8f85; --mid: #f0bf63; } }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--back);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p, ul { margin: .4rem 0; } .soft { color: var(--soft); }
.verdict { border-left: .4rem solid var(--good); background: var(--card); padding: .8rem 1rem;
  margin: 1rem 0; border-radius: .3rem; } .verdict.failed { border-color: var(--bad); }
.good { color: var(--good); } .bad { color: var(--bad); } .mid { color: var(--mid); }
.state { font-weight: 600; white-space: nowrap; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem .45rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; font-size: .85rem; }
th.number, td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.long { min-width: 16rem; } td > :first-child { margin-top: 0; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { background: var(--card); padding: .8rem; border-radius: .3rem; overflow-x: auto;
  white-space: pre-wrap; }
@media (max-width: 46rem) { thead { display: none; } tr, td, td.number { display: block; }
  tr { border-bottom: 1px solid var(--line); padding: .6rem 0; }
  td, td.number { border: 0; padding: .1rem 0; text-align: left; }
  td:empty { display: none; } td[data-label]::before { content: attr(data-label) " ";
  color: var(--soft); } }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--soft); }
"""


def html_page(title: str, *body: Element, style: str = "", script: str = "") -> str:
    """Returns a page; ``style`` is added to the common one, ``script`` runs when it is loaded.

    If a text were not escaped, the browser would still run and fetch nothing in it: the page
    allows only this script.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("title", title),
        element("style", Element(STYLE + style)),
    ]
    scripts = [element("script", Element(script))] if script else []
    whole = element("html", element("head", *head), element("body", *body, *scripts), lang="en")
    return f"<!doctype html>\n{whole}\n"
