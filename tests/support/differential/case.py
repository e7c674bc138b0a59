"""`Case`: a call as plain data, whose ``repr`` makes it again."""

from __future__ import annotations

from dataclasses import dataclass, fields

Place = int | tuple[str, tuple[str | tuple[str, ...] | None, ...]] | None
"""A device's number, a mesh's name with a partition spec, or nowhere in particular."""

MESHES: dict[str, tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...]]] = {
    "all": ((8,), ("x",), tuple(range(8))),
    "4x2": ((4, 2), ("x", "y"), tuple(range(8))),
    "2x4": ((2, 4), ("x", "y"), tuple(range(8))),
    "reversed": ((8,), ("x",), tuple(reversed(range(8)))),
    "first four": ((4,), ("x",), (0, 1, 2, 3)),
    "last four": ((2, 2), ("x", "y"), (4, 5, 6, 7)),
    "one": ((1,), ("x",), (3,)),
}
"""Sizes and names of axes, and the numbers of the devices."""


class Plain:
    """A dataclass whose ``repr`` omits fields with their default."""

    def __repr__(self) -> str:
        given = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        stated = [
            f"{f.name}={given[f.name]!r}"
            for f in fields(self)  # type: ignore[arg-type]
            if given[f.name] != f.default
        ]
        return f"{type(self).__name__}({', '.join(stated)})"


@dataclass(frozen=True, repr=False)
class Arg(Plain):
    """An argument: its value and its place."""

    kind: str = "array"
    """``python``, ``scalar`` (NumPy's), ``numpy``, ``array`` or ``weak`` (a weakly typed array)."""
    dtype: str = "float32"
    shape: tuple[int, ...] = ()
    place: Place = None
    seed: int = 0
    memory: str = ""
    """The kind of memory at its place, where that is not the default one."""

    @property
    def is_array(self) -> bool:
        """Whether it is an array of the library that is called."""
        return self.kind in ("array", "weak")

    @property
    def is_divided(self) -> bool:
        """Whether it is sharded over a mesh."""
        return isinstance(self.place, tuple)

    @property
    def is_weak(self) -> bool:
        """Whether its type is weak in JAX."""
        return self.kind == "weak" or (self.kind == "python" and self.dtype != "bool")


@dataclass(frozen=True, repr=False)
class Case(Plain):
    """A call of one function, and the use of its result."""

    form: str
    """``eager``, ``jit``, ``pmap``, ``shard_map``, ``device_put`` or ``from_jax``."""
    body: str
    """The function's result: Python, of the parameters ``x``, ``y`` and ``z``."""
    args: tuple[Arg, ...]
    options: tuple[tuple[str, str], ...] = ()
    """Keyword arguments of the form's function, as Python."""
    transform: str = ""
    """Applied to the function first: ``m.jit``, or one of JAX's for ``from_jax``."""
    aot: str = ""
    """``arrays`` or ``structs``, to lower and compile with before the call; or nothing."""
    x64: bool = False
    setting: str = ""
    """A context manager around all steps, as Python."""
    again: tuple[Arg, ...] = ()
    """The arguments of a second call; none for no second call."""
    then: str = ""
    """An expression of the result ``r``, as Python."""

    def option(self, name: str) -> str:
        """Returns the text of an option, empty where it is not given."""
        return dict(self.options).get(name, "")

    @property
    def all_args(self) -> tuple[Arg, ...]:
        """The arguments of both calls."""
        return self.args + self.again
