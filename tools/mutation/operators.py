"""Mutants of one source file, in Python by its syntax tree and in C by its lines."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """One change of the text of one function."""

    path: str
    function: str
    operator: str
    before: str
    after: str
    nth: int
    """Its number among the changes of this function with the same texts."""
    first: int
    """The first line of its statement, in C of its function."""
    line: int
    """The last line that it changes."""
    start: int
    """The offset of the changed text in the file, in characters."""
    end: int
    new: str
    """The replacement of the text from ``start`` to ``end``."""

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """The key that identifies the mutant after its function moved to another file or line."""
        return self.function, self.operator, self.before, self.after, self.nth

    @property
    def is_c(self) -> bool:
        """Whether it is of a C file."""
        return self.path.endswith(".c")

    def apply(self, text: str) -> str:
        """Returns the text of the file with the change."""
        return text[: self.start] + self.new + text[self.end :]


def mutants_of(path: str, text: str) -> list[Mutant]:
    """Returns all mutants of a file, by place."""
    found = _mutants_of_c(path, text) if path.endswith(".c") else _mutants_of_python(path, text)
    counts: Counter[tuple[str, ...]] = Counter()
    numbered = []
    for mutant in sorted(found, key=lambda one: (one.start, one.end, one.operator, one.after)):
        same = (mutant.function, mutant.operator, mutant.before, mutant.after)
        numbered.append(replace(mutant, nth=counts[same]))
        counts[same] += 1
    return numbered


SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def _mutants_of_python(path: str, text: str) -> Iterator[Mutant]:
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    encoded = text.encode()

    def place(line: int, column: int) -> int:
        return len(encoded[: lines[line - 1] + column].decode())

    for function, node, first in _nodes_in_functions(ast.parse(text), (), 0):
        for operator, changed in _changes(node):
            target: Any = node.test if isinstance(node, (ast.If, ast.While)) else node
            after = ast.unparse(changed)
            yield Mutant(
                path=path,
                function=function,
                operator=operator,
                before=ast.unparse(target),
                after=after,
                nth=0,
                first=first,
                line=target.end_lineno,
                start=place(target.lineno, target.col_offset),
                end=place(target.end_lineno, target.end_col_offset),
                new=f"({after})" if isinstance(changed, ast.expr) else after,
            )


def _nodes_in_functions(
    node: ast.AST, names: tuple[str, ...], first: int
) -> Iterator[tuple[str, ast.AST, int]]:
    """Walks through the bodies of functions, without annotations and decorators.

    Yields the qualified name, the node, and the first line of its statement.
    """
    if isinstance(node, ast.stmt):
        first = node.lineno
    if names and names[-1].endswith("()") and isinstance(node, (ast.stmt, ast.expr)):
        yield ".".join(names).replace("()", ""), node, first
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        mark = "" if isinstance(node, ast.ClassDef) else "()"
        for child in node.body:
            yield from _nodes_in_functions(child, (*names, node.name + mark), first)
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, (ast.JoinedStr, ast.Match)):
        return  # Python 3.11 has no positions within f-strings
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _nodes_in_functions(child, names, first)


def _swapped(kind: ast.AST) -> Any:
    return SWAPPED[type(kind)]()


def _changes(node: Any) -> Iterator[tuple[str, ast.AST]]:
    """Yields the operators that apply to a node, each with the new node, or the new condition."""
    match node:
        case ast.Compare(left, ops, comparators):
            for at, kind in enumerate(ops):
                new = [*ops[:at], _swapped(kind), *ops[at + 1 :]]
                yield "swapped comparison", ast.Compare(left, new, comparators)
        case ast.Constant(int(value)) if not isinstance(value, bool):
            yield "off by one", ast.Constant(value + 1)
        case ast.Expr(ast.Call()) | ast.Expr(ast.Await()):
            yield "dropped call", ast.Pass()
        case ast.If(test, _, other) if other:
            yield "swapped branches", _negated(test)
        case ast.If(test) | ast.While(test) if not isinstance(test, ast.Constant):
            yield "negated condition", _negated(test)
        case ast.IfExp(test, body, other):
            yield "swapped branches", ast.IfExp(test, other, body)
        case ast.Return(value) if value is not None and ast.unparse(value) != "None":
            yield "returned None", ast.Return(ast.Constant(None))
        case ast.BoolOp(kind, values):
            yield "and/or swapped", ast.BoolOp(_swapped(kind), values)
        case ast.BinOp(left, kind, right) if type(kind) in SWAPPED:
            text = isinstance(left, (ast.Constant, ast.JoinedStr)) and not _is_number(left)
            if not text:
                yield "swapped arithmetic", ast.BinOp(left, _swapped(kind), right)
        case ast.AugAssign(target, kind, value) if type(kind) in SWAPPED:
            yield "swapped arithmetic", ast.AugAssign(target, _swapped(kind), value)
        case ast.UnaryOp(ast.Not(), operand):
            yield "dropped not", operand
        case ast.Raise(exc) if exc is not None:
            yield "dropped raise", ast.Pass()
        case ast.Call(function, arguments, keywords):
            for at, keyword in enumerate(keywords):
                if keyword.arg is not None:
                    rest = [*keywords[:at], *keywords[at + 1 :]]
                    yield "removed keyword", ast.Call(function, arguments, rest)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Not(), test)


C_FUNCTION = re.compile(r"^[A-Za-z_][^;{}#=]*?\b(\w+)\([^;{}]*\)\s*\{\n(.*?)^\}", re.M | re.S)
C_SWAPS = {
    "swapped comparison": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "and/or swapped": {"&&": "||", "||": "&&"},
    "swapped arithmetic": {"+": "-", "-": "+", "*": "/", "+=": "-=", "-=": "+="},
}
C_LINES = {
    "dropped call": (r"^ *(\w+\(.*\);)$", ";"),
    "dropped assignment": (r"^ *([\w.>\[\]*-]+ [+|-]?= .*;)$", ";"),
    "returned 0": (r"\b(return (?!0;|NULL;).+;)$", "return 0;"),
}


def _mutants_of_c(path: str, text: str) -> Iterator[Mutant]:
    blank = re.sub(  # comments and strings keep their lengths and lines
        r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
        lambda found: re.sub(r"[^\n]", " ", found[0]),
        text,
        flags=re.S,
    )
    for function in C_FUNCTION.finditer(blank):
        start = function.start(2)
        for line in function[2].splitlines(keepends=True):
            whole = text[start : start + len(line)].rstrip("\n")
            for operator, first, last, new in _changes_of_line(line.rstrip("\n"), whole):
                yield Mutant(
                    path=path,
                    function=function[1],
                    operator=operator,
                    before=whole.strip(),
                    after=(whole[:first] + new + whole[last:]).strip(),
                    nth=0,
                    first=text.count("\n", 0, function.start(1)) + 1,
                    line=text.count("\n", 0, start) + 1,
                    start=start + first,
                    end=start + last,
                    new=new,
                )
            start += len(line)


def _changes_of_line(line: str, whole: str) -> Iterator[tuple[str, int, int, str]]:
    """Yields operators for a line of C, with place and new text; ``line`` has no strings."""
    for operator, swaps in C_SWAPS.items():
        for found in re.finditer(r"(?<= )[<>=!&|+*-]{1,2}(?= )", line):
            if found[0] in swaps:
                yield operator, found.start(), found.end(), swaps[found[0]]
    for found in re.finditer(r"(?<![\w.])(?:0|[1-9]\d*)(?![\w.])", line):
        yield "off by one", found.start(), found.end(), str(int(found[0]) + 1)
    for found in re.finditer(r"!(?=[\w(])", line):
        yield "dropped not", found.start(), found.end(), ""
    for found in re.finditer(r"\b(?:if|while) \(", line):
        end = _closing(line, found.end())
        if end is not None:
            yield "negated condition", found.end(), end, f"!({whole[found.end() : end]})"
    for operator, (pattern, new) in C_LINES.items():
        for found in re.finditer(pattern, line):
            if found[1].count("(") == found[1].count(")"):
                yield operator, found.start(1), found.end(1), new


def _closing(line: str, start: int) -> int | None:
    """Returns where the parenthesis that is open before ``start`` is closed on this line."""
    depth = 1
    for at in range(start, len(line)):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if not depth:
            return at
    return None
