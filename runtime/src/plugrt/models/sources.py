"""`ModelSource`: a program to pack, with names for its arguments and results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plugrt.errors import ArgumentError, MissingTraceExtra, ProgramError, ShapeError
from plugrt.interface import Program, TensorType
from plugrt.models.signature import ModelValue, Sizes
from plugrt.programs.export_conversion import read_module_for
from plugrt.programs.exported import ExportedProgram
from plugrt.programs.exported_trees import ExportedTree
from plugrt.programs.loading import load_program
from plugrt.programs.parsing import has_bindings, main_types, parse_program
from plugrt.wire.safetensors import HostArray

if TYPE_CHECKING:
    from plugrt.stablehlo.bindings import ir

Shape = tuple[int | str, ...]
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


def read_source(
    source: Any, names: Sequence[str], outputs: Sequence[str], variables: Sequence[str]
) -> ModelSource:
    """Returns a program to pack; ``names`` and ``outputs`` name its arguments and results.

    ``variables`` name the dynamic dimensions of StableHLO; an export names its own.

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
    return read_stablehlo(program, names, outputs, variables)


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


def read_stablehlo(
    program: Program, names: Sequence[str], outputs: Sequence[str], variables: Sequence[str] = ()
) -> ModelSource:
    """Returns a program with these names for its values and its dynamic dimensions.

    One variable names all dynamic dimensions; several name one each, in the parameters' order.
    Raises `ArgumentError` for another number of variables, and `ProgramError` for tokens and
    for results whose dynamic dimensions are not variables.
    """
    _, inputs, results = parse_program(program, dynamic=True)
    if any(kind.is_token for kind in (*inputs, *results)):
        raise ProgramError(
            f"{program.name!r} has tokens among its parameters and results; a model is packed "
            "from arrays"
        )
    arguments = [
        ModelValue(name, shape, kind.dtype)
        for name, shape, kind in zip(
            fill_names(names, len(inputs), "arg", "parameters"),
            _name_dimensions(program, inputs, variables),
            inputs,
            strict=True,
        )
    ]

    def make(platform: str | None, sizes: Sizes) -> ir.Module:
        from plugrt.stablehlo.refinement import refine

        module = parse_program(program, dynamic=True)[0]
        types = [value.at(sizes) for value in arguments]
        return refine(module, types, None, program.name) if variables else module

    if any(n < 0 for kind in results for n in kind.shape):
        shapes = _find_result_shapes(program, variables, make)
    else:
        shapes = [kind.shape for kind in results]
    titles = fill_names(outputs, len(results), "output", "results")
    return ModelSource(
        program.name,
        arguments,
        [ModelValue(n, s, t.dtype) for n, s, t in zip(titles, shapes, results, strict=True)],
        (),
        make,
    )


def _name_dimensions(
    program: Program, inputs: Sequence[TensorType], variables: Sequence[str]
) -> list[Shape]:
    """Returns the parameters' shapes, with variables for dynamic dimensions."""
    count = sum(n < 0 for kind in inputs for n in kind.shape)
    if count and len(variables) not in (1, count):
        listed = ", ".join(map(str, inputs)).replace("-1", "?")
        raise ArgumentError(
            f"buckets has the keys {[*variables]}; {program.name!r} has {count} dynamic dimensions "
            f"in {listed:.500}. Fix: one name for all, a name for each in their order, or an "
            "export of JAX, which states which are equal"
        )
    left = itertools.cycle(variables)
    return [tuple(next(left) if n < 0 else n for n in kind.shape) for kind in inputs]


def _find_result_shapes(
    program: Program, variables: Sequence[str], make: MakeModule
) -> list[Shape]:
    """Returns the results' shapes, by the results' sizes for two sizes of each variable."""
    few = {name: 101 + 2 * i for i, name in enumerate(variables)}
    many = {name: 211 + 2 * i for i, name in enumerate(variables)}
    named = {(few[name], many[name]): name for name in variables}
    try:
        found = [main_types(make(None, sizes), program.name)[1] for sizes in (few, many)]
        return [
            tuple(a if a == b else named[a, b] for a, b in zip(one.shape, two.shape, strict=True))
            for one, two in zip(*found, strict=True)
        ]
    except ShapeError as error:
        raise ArgumentError(
            f"the sizes {few} do not fit each other: {error}. Fix: one key of buckets for all "
            "dimensions, or an export of JAX"
        ) from error
    except KeyError as error:
        a, b = error.args[0]
        raise ProgramError(
            f"a result of {program.name!r} has a dimension of {a} for {few} and of {b} for {many}; "
            "in a model packed from StableHLO, each is a constant or one of the parameters'. Fix: "
            "an export of JAX, which states the others"
        ) from error
