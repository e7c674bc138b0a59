"""`read_torch`: the source of a model in PyTorch, which torch_xla lowers to StableHLO."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.errors import ArgumentError, ProgramError, ShapeError
from plugrt.interface import Program
from plugrt.models.signature import ModelValue, Sizes
from plugrt.models.sources import ModelSource, fill_names, read_stablehlo, require_bindings
from plugrt.programs.parsing import parse_program
from plugrt.wire.safetensors import HostArray

if TYPE_CHECKING:
    from plugrt.stablehlo.bindings import ir

_SYMBOL = re.compile(r"\bs\d+\b")
"""The name that PyTorch gives to a dynamic dimension."""


@dataclass(frozen=True, slots=True)
class TorchProgram:
    """A program of torch_xla: StableHLO, and the origin of each of its parameters."""

    program: Program
    locations: Sequence[Any]
    weights: Mapping[str, HostArray]
    """The parameters and buffers of the module, and constants, by name."""

    @staticmethod
    def of(bundle: Any) -> TorchProgram:
        """Reads a bundle, whose metadata state the origin of each parameter.

        That is a parameter of the module by its name, a constant by its number, or an argument by
        its position.
        """
        [function] = bundle.stablehlo_funcs
        weights = {
            _weight_name(each): np.asarray(
                bundle.additional_constants[each.position]
                if each.type_.name == "CONSTANT"
                else bundle.state_dict[each.name]
            )
            for each in function.meta.input_locations
            if each.type_.name != "INPUT_ARG"
        }
        program = Program(function.bytecode, "mlir", function.meta.name)
        return TorchProgram(program, function.meta.input_locations, weights)

    def order(self, names: Sequence[str]) -> list[str]:
        """Returns the names of the parameters, if the arguments have these names."""
        return [
            names[each.position] if each.type_.name == "INPUT_ARG" else _weight_name(each)
            for each in self.locations
        ]


def _weight_name(location: Any) -> str:
    if location.type_.name == "CONSTANT":
        return f"constant{location.position}"
    return str(location.name)


@dataclass(frozen=True, slots=True)
class TorchSignature:
    """The arguments and results of an ``ExportedProgram``."""

    names: Sequence[str]
    """The name of each argument, also of those that are no tensors."""
    arguments: Mapping[str, ModelValue]
    """The arguments that are tensors, by name."""
    results: Sequence[ModelValue]
    sizes: Sizes
    """The sizes of the dimension variables in the example that the program was exported with."""

    @staticmethod
    def of(
        exported: Any, names: Sequence[str], outputs: Sequence[str], variables: Sequence[str]
    ) -> TorchSignature:
        """Reads the signature; `ArgumentError` for too many names, or not one for each variable."""
        keys = [str(name) for name in exported.graph_signature.user_inputs]
        given = fill_names(names, len(keys), "arg", "arguments")[: len(names)]
        names = [*given, *keys[len(names) :]]
        values = {node.name: node.meta.get("val") for node in exported.graph.nodes}
        inputs = [values.get(key) for key in keys]
        results = [values.get(str(key)) for key in exported.graph_signature.user_outputs]
        symbols = _find_symbols(inputs)
        if len(symbols) != len(variables):
            raise ArgumentError(
                f"buckets names {len(variables)} dimensions ({', '.join(variables)}); the program "
                f"of PyTorch has {len(symbols)} dynamic ones ({', '.join(symbols)}). Fix: a name "
                "for each, in the order of the arguments"
            )
        renamed = dict(zip(symbols, variables, strict=True))
        titles = fill_names(outputs, len(results), "output", "results")
        sizes = {
            renamed[str(n)]: int(size)
            for value, example in zip(inputs, _leaves(exported), strict=True)
            for n, size in zip(_shape(value), _shape(example), strict=True)
            if str(n) in renamed
        }
        return TorchSignature(
            names,
            {n: _name(n, v, renamed) for n, v in zip(names, inputs, strict=True) if _is_tensor(v)},
            [_name(n, v, renamed) for n, v in zip(titles, results, strict=True)],
            sizes,
        )


def read_torch(
    exported: Any, names: Sequence[str], outputs: Sequence[str], variables: Sequence[str]
) -> ModelSource:
    """Returns an ``ExportedProgram`` of PyTorch as torch_xla lowers it, with its parameters.

    Arguments without a name have PyTorch's. ``variables`` name the dynamic dimensions; a program
    with some is exported again and lowered for each size.

    Raises `MissingTraceExtra` without jaxlib, `ProgramError` without torch_xla, for a program that
    it cannot lower, and where a result has another type than PyTorch's; `ArgumentError` for names
    that do not fit.
    """
    require_bindings()
    functional = exported.run_decompositions({})  # else it writes to buffers in place
    if changed := dict(functional.graph_signature.buffers_to_mutate):
        raise ProgramError(
            f"a call of the program of PyTorch changes its buffers {[*changed.values()]}; a model "
            "has no state of its own. Fix: return the new values, and pass feeds="
        )
    signature = TorchSignature.of(exported, names, outputs, variables)
    first = _lower(exported, signature, signature.sizes)
    order = first.order(signature.names)

    def make(platform: str | None, sizes: Sizes) -> ir.Module:
        lowered = _lower(exported, signature, sizes) if sizes else first
        if lowered.order(signature.names) != order or not _are_same(lowered.weights, first.weights):
            raise ProgramError(
                f"torch_xla lowers the program with other parameters for the sizes {dict(sizes)}; "
                "a model has the same weights in all of its programs"
            )
        module, _, types = parse_program(lowered.program)
        # Workaround for torch-xla-empty-sum.
        for value, kind in zip(signature.results, types, strict=True):
            if value.at(sizes) != kind:
                raise ProgramError(
                    f"torch_xla lowers the program to one whose result {value.name!r} is {kind}, "
                    f"where PyTorch's is {value.at(sizes)}; the fault is torch_xla's lowering"
                )
        return module

    read = read_stablehlo(first.program, order, outputs)
    return ModelSource(
        read.name,
        [signature.arguments.get(value.name, value) for value in read.arguments],
        signature.results,
        (),
        make,
        first.weights,
        unused=frozenset(signature.arguments.keys() - {*order}),
        call=lambda inputs: _call(exported, signature, inputs),
    )


def _find_symbols(values: Sequence[Any]) -> list[str]:
    """Returns the dynamic dimensions of arguments, in order."""
    texts = [str(n) for value in values for n in getattr(value, "shape", ()) if type(n) is not int]
    return list(dict.fromkeys(text for text in texts if _SYMBOL.fullmatch(text)))


def _name(name: str, value: Any, renamed: Mapping[str, str]) -> ModelValue:
    """Returns the value of a tensor of PyTorch, with names for its dynamic dimensions."""
    shape = tuple(
        n if type(n) is int else _SYMBOL.sub(lambda s: renamed.get(s[0], s[0]), str(n))
        for n in value.shape
    )
    return ModelValue(name, shape, np.dtype(str(value.dtype).removeprefix("torch.")))


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape")


def _shape(value: Any) -> Sequence[Any]:
    return tuple(value.shape) if _is_tensor(value) else ()


def _are_same(some: Mapping[str, HostArray], others: Mapping[str, HostArray]) -> bool:
    return some.keys() == others.keys() and all(
        np.array_equal(array, others[name], equal_nan=array.dtype.kind in "fc")
        for name, array in some.items()
    )


def _leaves(exported: Any) -> list[Any]:
    from torch.utils import _pytree  # type: ignore[import-not-found,unused-ignore]

    leaves: list[Any] = _pytree.tree_leaves(exported.example_inputs)
    return leaves


def _lower(exported: Any, signature: TorchSignature, sizes: Sizes) -> TorchProgram:
    """Lowers a program; one with dynamic dimensions is exported for these sizes before."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
        from torch_xla.stablehlo import exported_program_to_stablehlo  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise ProgramError(
            "torch_xla makes StableHLO of an ExportedProgram of PyTorch, and cannot be imported "
            f"({error}). Fix: pip install torch_xla"
        ) from error
    if sizes:
        zeros = {
            name: torch.zeros(value.at(sizes).shape, dtype=getattr(torch, value.dtype.name))
            for name, value in signature.arguments.items()
        }
        try:
            exported = _with_arguments(exported, signature.names, zeros, torch.export.export)
        except (RuntimeError, ValueError, AssertionError) as error:
            raise ShapeError(f"PyTorch refuses them: {error!s:.300}") from error
    try:
        return TorchProgram.of(exported_program_to_stablehlo(exported)._bundle)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise ProgramError(f"torch_xla cannot lower the program of PyTorch: {why:.300}") from error


def _with_arguments(
    exported: Any, names: Sequence[str], inputs: Mapping[str, Any], use: Callable[..., Any]
) -> Any:
    """Returns ``use(module, args, kwargs)`` with these inputs in place of the example's."""
    from torch.utils import _pytree

    leaves, structure = _pytree.tree_flatten(exported.example_inputs)
    leaves = [inputs.get(name, leaf) for name, leaf in zip(names, leaves, strict=True)]
    arguments, keywords = _pytree.tree_unflatten(leaves, structure)
    return use(exported.module(), arguments, keywords)


def _call(
    exported: Any, signature: TorchSignature, inputs: Mapping[str, HostArray]
) -> Sequence[HostArray]:
    """Returns PyTorch's own results for these inputs."""
    import torch
    from torch.utils import _pytree

    tensors = {name: torch.from_numpy(value) for name, value in inputs.items()}
    with torch.no_grad():
        found = _with_arguments(
            exported, signature.names, tensors, lambda module, args, kwargs: module(*args, **kwargs)
        )
    return [np.asarray(each) for each in _pytree.tree_leaves(found)]
