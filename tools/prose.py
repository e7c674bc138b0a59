"""Counts constructions that make the project's prose hard to read, and keeps their ceilings.

    python tools/prose.py [ROOT] [--worst N] [--folder F] [--json]    prints counts
    python tools/prose.py [ROOT] --check                              run by `make lint`
    python tools/prose.py [ROOT] --write [--since COMMIT]             lowers the ceilings

The script reads docstrings and comments of Python, comments of C, and Markdown outside of code
blocks. A count is a place to look, not a verdict: a quotation or a term of the field may be right.
Peers (same script): 0.1 to 0.6 for each construction in jax/_src.

A file's row in `tools/prose_ceilings.json` is the number of its hits, which can only fall. A file
without a row may have 3 hits per 1,000 words. `--write` writes the rows again after a fall, a
rename or a deletion. It compares the tree with the commit that last changed the rows, or with
COMMIT. It refuses a rise, but accepts hits that another file lost in the same change: text may move
with a file that is renamed, split or joined.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

CEILINGS = "tools/prose_ceilings.json"
ALLOWED = 3
"""Hits per 1,000 words in a file without a row."""
ENDINGS = (".py", ".pyi", ".c", ".h", ".md")
CONSTRUCTS = {
    "what-noun": r"\b(?:of|with|for|from|in|on|by|to|is|are|and|as|beside|returns?|holds?|has|makes?|says?|takes?|gives?|keeps?|reads?|puts?) what (?!if\b|is (?:this|that)\b)|(?:^|[.:;(] )[Ww]hat (?:a|an|the|is|are|was|has|it|they|each|no|some|one|this|that|of)\b[^?]{0,200}?(?:[.;:]|$)",  # noqa: E501
    "prep-which": r"\b(?:of|by|in|on|with|for|from|to|at|under|beyond|within|beside|into) (?:which|whose|whom)\b",  # noqa: E501
    "things-that-tell": r"\b(?:is|are|was|were|be|being) told\b|\b(?:that|which|it|page|table|text|library|backend|program|function|test|plugin|row|field|option|setting|error|file|report) (?:says?|knows?|asks?|tells?)\b",  # noqa: E501
    "that-of": r"\b(?:that|those) of\b",
    "takes": r"\btakes?\b",
    "has-verb": r"\b[Hh]as (?:the |a |an |those |these |two |both |what |all |each )?\w+(?: \w+){0,3} (?:know|end|use|make|take|be|wait|hold|see|go|stop|call|keep|give)\b",  # noqa: E501
    "lie-where": r"\b(?:lies?|lay|stands?|stood) (?:where|as|on|in|there|here|beside|otherwise|again)\b",  # noqa: E501
}
PATTERNS = {name: re.compile(pattern) for name, pattern in CONSTRUCTS.items()}
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")


class Hit(NamedTuple):
    """One use of a construction, with the text around it: it is the same hit after a move."""

    construct: str
    text: str


@dataclass
class Count:
    """The words of a file's prose, and its hits with their lines."""

    words: int = 0
    hits: list[tuple[int, Hit]] = field(default_factory=list)

    @property
    def allowed(self) -> int:
        """The number of hits that a file of this length may have without a row."""
        return ALLOWED * self.words // 1000

    def each(self) -> Counter[Hit]:
        """Returns how often each hit is there."""
        return Counter(hit for _, hit in self.hits)


def git(root: Path, *arguments: str) -> str:
    """Returns the output of a git command; its failure ends the script."""
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def names_in_tree(root: Path) -> list[str]:
    """Returns the files that git tracks or would add; without git all files."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    found = found or [path.relative_to(root).as_posix() for path in root.rglob("*")]
    return sorted({n for n in found if n.endswith(ENDINGS) and (root / n).is_file()})


def python_prose(text: str) -> Iterator[tuple[int, str]]:
    """Yields docstrings, other strings that are statements, and comments."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for item in body if isinstance(body, list) else []:
            if (
                isinstance(item, ast.Expr)
                and isinstance(item.value, ast.Constant)
                and isinstance(item.value.value, str)
            ):
                yield item.lineno, re.sub(r"(?m)^\s*>>>.*$", "", item.value.value)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and not re.match(
                r"#\s*(noqa|type:|pyright:|-{3})", token.string
            ):
                yield token.start[0], token.string.lstrip("# ")
    except (tokenize.TokenError, IndentationError):
        return


def prose(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yields each piece of prose of a file, with its line."""
    if name.endswith((".py", ".pyi")):
        yield from python_prose(text)
    elif name.endswith((".c", ".h")):
        for found in re.finditer(r"/\*(.*?)\*/|//(.*)", text, re.S):
            yield text.count("\n", 0, found.start()) + 1, found.group(1) or found.group(2) or ""
    else:
        blank = re.sub(r"```.*?```", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
        for number, line in enumerate(blank.splitlines(), 1):
            yield number, re.sub(r"`[^`]*`|\([^)]*\.md[^)]*\)", "x", line)


def count(name: str, text: str) -> Count:
    """Returns the words and hits of a file with this text."""
    found = Count()
    for line, piece in prose(name, text):
        flat = " ".join(piece.split())
        found.words += len(WORD.findall(flat))
        for construct, pattern in PATTERNS.items():
            for match in pattern.finditer(flat):
                around = flat[max(0, match.start() - 30) : match.end() + 50]
                found.hits.append((line, Hit(construct, around)))
    return found


def count_tree(root: Path) -> dict[str, Count]:
    """Returns the count of each file in the tree."""
    return {n: count(n, (root / n).read_text(errors="replace")) for n in names_in_tree(root)}


def count_changed(root: Path, commit: str) -> dict[str, Count]:
    """Returns the counts at a commit of the files that have changed since."""
    changed = git(root, "diff", "--name-only", "--no-renames", "--diff-filter=MD", commit)
    return {
        name: count(name, git(root, "show", f"{commit}:{name}"))
        for name in changed.splitlines()
        if name.endswith(ENDINGS)
    }


def describe(name: str, hits: Iterator[tuple[int, Hit]]) -> list[str]:
    """Returns a line for each hit of a file."""
    return [f"  {name}:{line}: {hit.construct}: …{hit.text}…" for line, hit in hits]


def check(root: Path) -> list[str]:
    """Returns what is wrong: files over their ceilings, and rows that are not in step."""
    rows: dict[str, int] = json.loads((root / CEILINGS).read_text())
    counts = count_tree(root)
    wrong = []
    for name, found in counts.items():
        hits, ceiling = len(found.hits), rows.get(name, found.allowed)
        if hits > ceiling:
            wrong.append(f"{name}: {hits} hits of tools/prose.py, {ceiling} are allowed")
            wrong += describe(name, iter(found.hits))
    low = {n for n in rows if len(counts.get(n, Count()).hits) < rows[n]}
    if low:
        some = ", ".join(sorted(low)[:5])
        wrong.append(f"{CEILINGS} is higher than {len(low)} files ({some}); "
                     "lower it: python tools/prose.py --write")  # fmt: skip
    return wrong


def write(root: Path, since: str) -> list[str]:
    """Writes the rows of today, or returns the hits that a file has gained since a commit."""
    commit = since or git(root, "log", "-1", "--format=%H", "--", CEILINGS).strip() or "HEAD"
    counts, before = count_tree(root), count_changed(root, commit)
    there = set(git(root, "ls-tree", "-r", "--name-only", commit).splitlines())
    changed = [n for n in counts if n in before or n not in there]
    lost: Counter[Hit] = Counter()
    for name, old in before.items():
        lost += old.each() - counts.get(name, Count()).each()
    wrong = []
    for name in changed:
        found, old = counts[name], before.get(name, Count())
        gained = found.each() - old.each()
        moved = gained & lost
        lost -= moved
        ceiling = (len(old.hits) or found.allowed) + moved.total()
        if len(found.hits) > ceiling:
            wrong.append(f"{name}: {len(found.hits)} hits, {ceiling} are allowed since {commit}")
            new = gained - moved
            wrong += describe(name, ((line, hit) for line, hit in found.hits if hit in new))
    if not wrong:
        rows = {name: len(found.hits) for name, found in counts.items() if found.hits}
        (root / CEILINGS).write_text(json.dumps(rows, indent=0) + "\n")
    return wrong


def folder(name: str) -> str:
    """Returns the part of the tree that counts a file in the report."""
    parts = name.split("/")
    for package in ("plugrt", "plugrt_sdk"):
        if package in parts:
            after = parts[parts.index(package) + 1 :]
            return f"{package}/{after[0] if len(after) > 1 else '(root)'}"
    return "/".join(parts[:2] if parts[0] in ("plugins", "runtime", "plugin_sdk") else parts[:1])


def report(root: Path, worst: int, only: str | None, as_json: bool) -> None:
    """Prints the hits per 1,000 words of each folder, and the first ``worst`` hits."""
    words: Counter[str] = Counter()
    hits: dict[str, Counter[str]] = {}
    lines: list[str] = []
    for name, found in count_tree(root).items():
        where = folder(name)
        if only in (None, where):
            words[where] += found.words
            hits.setdefault(where, Counter()).update(hit.construct for _, hit in found.hits)
            lines += describe(name, iter(found.hits))
    hits["ALL"] = sum(hits.values(), Counter())
    words["ALL"] = words.total()
    rows = {
        where: {n: round(1000 * hits[where][n] / (words[where] or 1), 1) for n in PATTERNS}
        for where in words
        if words[where] > 300 or where == "ALL"
    }
    if as_json:
        print(json.dumps({where: row | {"words": words[where]} for where, row in rows.items()}))
        return
    print(f"{'folder':28}{'words':>8}" + "".join(f"{n:>18}" for n in PATTERNS) + f"{'sum':>8}")
    for where, row in sorted(rows.items(), key=lambda r: (r[0] == "ALL", -sum(r[1].values()))):
        figures = "".join(f"{value:>18}" for value in row.values())
        print(f"{where:28}{words[where]:>8}{figures}{sum(row.values()):>8.1f}")
    print(*lines[:worst], sep="\n")


def main() -> int:
    """Runs the command line and returns the exit status."""
    kind = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=kind)
    options.add_argument("root", nargs="?", default=".", type=Path)
    options.add_argument("--worst", type=int, default=0)
    options.add_argument("--folder")
    options.add_argument("--json", action="store_true")
    options.add_argument("--check", action="store_true")
    options.add_argument("--write", action="store_true")
    options.add_argument("--since", default="")
    given = options.parse_args()
    if not (given.check or given.write):
        report(given.root, given.worst, given.folder, given.json)
        return 0
    wrong = write(given.root, given.since) if given.write else check(given.root)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
