"""`ModelSource`: a program to pack, with names for its arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plugrt.errors import ArgumentError, MissingTraceExtra, ProgramError
from plugrt.interface import Program
from plugrt.models.signature import ModelValue, Sizes
from plugrt.programs.export_conversion import read_module_for
from plugrt.programs.exported import ExportedProgram
from plugrt.programs.exported_trees import ExportedTree
from plugrt.programs.loading import load_program
from plugrt.programs.parsing import has_bindings, parse_program
from plugrt.wire.safetensors import HostArray

if TYPE_CHECKING:
    from plugrt.stablehlo.bindings import ir

MakeModule = Callable[[str | None, Sizes], "ir.Module"]
"""Makes the module for a platform and the sizes of the dimension variables."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The arguments and results of a program, and its modules."""

    name: str
    arguments: Sequence[ModelValue]
    results: Sequence[ModelValue]
    platforms: Sequence[str]
    """The platforms that the program is for; empty for all."""
    make_module: MakeModule
    weights: Mapping[str, HostArray] = field(default_factory=dict)
    """The arrays that come with the program, by the argument's name."""
    unused: frozenset[str] = frozenset()
    """The names of arguments without a parameter in the module."""
    call: Callable[[Mapping[str, HostArray]], Sequence[HostArray]] | None = None
    """Calls the source of the program, to compare results; None if there is only the program."""


def require_bindings() -> None:
    """Raises `MissingTraceExtra` without jaxlib, which reads programs to pack."""
    if not has_bindings():
        raise MissingTraceExtra(
            'packing a model reads its program, which needs jaxlib: pip install "plugrt[trace]"'
        )


def read_source(source: Any, names: Sequence[str], outputs: Sequence[str]) -> ModelSource:
    """Returns a program to pack; ``names`` and ``outputs`` name its positional arguments.

    Raises `MissingTraceExtra` without jaxlib, `ProgramError` for a source that cannot be
    packed, and `ArgumentError` for too many names.
    """
    require_bindings()
    program = load_program(source)
    if isinstance(program, ExportedProgram):
        return _read_export(program, names, outputs)
    if program.format != "mlir":
        raise ProgramError(
            f"{program.name!r} is in the format {program.format!r}; a model is packed from a "
            "program in StableHLO, an export of JAX or a torch.export.ExportedProgram"
        )
    return read_stablehlo(program, names, outputs)


def _read_export(
    program: ExportedProgram, names: Sequence[str], outputs: Sequence[str]
) -> ModelSource:
    exported = program.exported
    if exported.nr_devices > 1:
        raise ProgramError(
            f"{exported.fun_name!r} was exported for {exported.nr_devices} devices; a model is "
            "packed for one"
        )
    positional, keywords = exported.in_tree.children
    paths = [
        *_leaf_paths(positional, fill_names(names, len(positional.children), "arg", "arguments")),
        *_leaf_paths(keywords),
    ]
    found = _values(paths, exported.in_avals)
    several = exported.out_tree.kind in ("tuple", "list")
    given = (
        fill_names(outputs, len(exported.out_tree.children), "output", "results")
        if several
        else fill_names(outputs, 1, "output", "results")
    )
    if several or exported.out_tree.kind == "dict":
        named = given if several else None
        left = [*_leaf_paths(exported.out_tree, named)]
    else:
        left = [(given[0], *path) for path in _leaf_paths(exported.out_tree)]
    platforms = exported.platforms
    kept = [found[i] for i in exported.module_kept_var_idx]

    def make(platform: str | None, sizes: Sizes) -> ir.Module:
        index = platforms.index(platform) if platform and len(platforms) > 1 else None
        types = [value.at(sizes) for value in found]
        return read_module_for(program, index, types)[0]

    unchecked = "platform" in exported.disabled_safety_checks and len(platforms) == 1
    return ModelSource(
        exported.fun_name,
        kept,
        _values(left, exported.out_avals),
        () if unchecked else platforms,
        make,
        unused=frozenset({value.name for value in found} - {value.name for value in kept}),
    )


def _leaf_paths(
    tree: ExportedTree, names: Sequence[str] | None = None
) -> Iterator[tuple[str, ...]]:
    """Yields the path of each leaf; ``names`` name the children, by default by their keys."""
    if tree.kind == "leaf":
        yield ()
        return
    keys = names or tree.names or [str(i) for i in range(len(tree.children))]
    for key, child in zip(keys, tree.children, strict=True):
        for path in _leaf_paths(child):
            yield key, *path


def _values(paths: Sequence[Sequence[str]], avals: Sequence[Any]) -> list[ModelValue]:
    return [
        ModelValue(".".join(filter(None, path)), tuple(aval.shape), aval.dtype)
        for path, aval in zip(paths, avals, strict=True)
    ]


def fill_names(names: Sequence[str], count: int, stem: str, what: str) -> list[str]:
    """Returns a name for each position: those given, then ``arg1`` and so on."""
    if len(names) > count:
        raise ArgumentError(f"{len(names)} names ({', '.join(names)}) for {count} {what}")
    if count == 1 and not names:
        return [stem]
    return [*names, *(f"{stem}{i}" for i in range(len(names), count))]


def read_stablehlo(program: Program, names: Sequence[str], outputs: Sequence[str]) -> ModelSource:
    """Returns a program with these names; `ProgramError` for one of unknown shapes."""
    _, inputs, results = parse_program(program)
    for kind in (*inputs, *results):
        if kind.is_token or any(n < 0 for n in kind.shape):
            raise ProgramError(
                f"{program.name!r} has {kind} among its parameters and results; a model is packed "
                "from arrays of known shapes, or from an export of JAX with symbolic ones"
            )

    def named(given: Sequence[str], stem: str, what: str, types: Sequence[Any]) -> list[ModelValue]:
        filled = fill_names(given, len(types), stem, what)
        return [ModelValue(n, t.shape, t.dtype) for n, t in zip(filled, types, strict=True)]

    return ModelSource(
        program.name,
        named(names, "arg", "parameters", inputs),
        named(outputs, "output", "results", results),
        (),
        lambda platform, sizes: parse_program(program)[0],
    )
