"""Staging: calling a Python function on tracers, and the program that comes of it."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from plugrt import monitoring
from plugrt.config import config
from plugrt.errors import NotAnArray
from plugrt.execution import tree
from plugrt.execution.arguments import ParameterType
from plugrt.execution.array import Array
from plugrt.execution.caches import BoundedCache
from plugrt.execution.compile import dump
from plugrt.execution.frames import warn_user
from plugrt.execution.launch import Plan, Source
from plugrt.execution.placement import Launch
from plugrt.interface import Client, Program, TensorType
from plugrt.stablehlo.artifacts import Version, portable_artifact
from plugrt.stablehlo.bindings import func, ir
from plugrt.stablehlo.passes import legalize_chlo
from plugrt.tracing.emit import as_tracer
from plugrt.tracing.trace import Trace
from plugrt.tracing.tracer import Tracer


@dataclass(frozen=True, slots=True)
class Parameter:
    """A flat argument of a function to be traced."""

    type: TensorType
    weak: bool = False
    name: str = ""
    donated: bool = False


@dataclass(frozen=True)
class Staged:
    """A traced function: its module, and how calls map to the module's ``main``."""

    plan: Plan
    module: ir.Module
    parameters: tuple[Parameter, ...]
    result_types: tuple[TensorType, ...]
    """The types of the module's results, those outputs that it computes."""
    output_types: tuple[TensorType, ...]
    """The types of all flat outputs."""
    weak_outputs: tuple[bool, ...]
    """Whether each flat output stands for a Python scalar."""
    out_tree: tree.PyTreeSpec
    loaded: BoundedCache[Launch, Any] = field(default_factory=lambda: BoundedCache(64))
    """What was compiled of it, by launch; see `plugrt.execution.programs.load`."""
    _artifacts: dict[Version | None, bytes] = field(default_factory=dict)

    @property
    def types(self) -> tuple[ParameterType, ...]:
        """Shape, dtype and weakness of each flat argument."""
        return tuple((p.type.shape, p.type.dtype, p.weak) for p in self.parameters)

    def program(self, client: Client) -> Program:
        """Returns the program as ``client`` takes it: a portable artifact of its version."""
        return self.program_at(client.capabilities.stablehlo_current_version)

    def program_at(self, version: Version | None) -> Program:
        """Returns the program as a portable artifact that a reader of ``version`` takes."""
        code = self._artifacts.get(version)
        if code is None:
            start = time.perf_counter()
            code = self._artifacts[version] = portable_artifact(self.module, version)
            if config.dump_ir_to:
                dump(self.plan.name, self.text)
            monitoring.record_event_duration_secs(
                monitoring.LOWER, time.perf_counter() - start, fun_name=self.plan.name
            )
        return Program(code, "mlir", self.plan.name)

    @cached_property
    def bytecode(self) -> bytes:
        """The module as MLIR bytecode, for another context of this process."""
        stream = io.BytesIO()
        self.module.operation.write_bytecode(stream)
        return stream.getvalue()

    @cached_property
    def text(self) -> str:
        """The module as StableHLO text."""
        return str(self.module)


def parameters_of(
    types: Sequence[ParameterType], names: Sequence[str], donated: frozenset[int] = frozenset()
) -> list[Parameter]:
    """Returns the parameters of a function that is staged for arguments of these types."""
    return [
        Parameter(TensorType(shape, dtype), weak, name, i in donated)
        for i, ((shape, dtype, weak), name) in enumerate(zip(types, names, strict=True))
    ]


def stage(
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    *,
    name: str,
    axes: Mapping[str, int] | None = None,
    keep_unused: bool = False,
    forward: bool = True,
) -> Staged:
    """Calls ``function`` with one tracer for each parameter and returns what it traced.

    ``axes`` are axis names bound for collectives. Unused parameters are dropped unless
    ``keep_unused``; outputs that are arguments or constants bypass the program if ``forward``.
    Raises what the function raises, and `NotAnArray` with the path of an output that is no array.
    """
    start = time.perf_counter()
    trace = Trace(name, axes)
    with trace:
        types = [trace.mlir_type(p.type.shape, p.type.dtype) for p in parameters]
        main = _main(trace, name, types)
        block = main.add_entry_block([ir.Location.name(p.name or "arg") for p in parameters])
        with trace.inside(block, isolated=True):
            tracers = [
                Tracer(v, trace, weak=p.weak, origin=p.name and f"argument {p.name} of {name!r}")
                for v, p in zip(block.arguments, parameters, strict=True)
            ]
            leaves, out_tree = tree.flatten(function(*tracers))
            if any(type(leaf) not in (Tracer, Array) for leaf in leaves):
                _check_outputs(tree.unflatten(out_tree, leaves), name)
            outputs = [as_tracer(leaf) for leaf in leaves]
            sources, results = _route(trace, outputs, tracers, parameters, forward)
            values = [r.value for r in results]
            func.ReturnOp(values, loc=trace.location())
        constants = [captured.data for captured in trace.captured.values()]
        kept = _prune(block, parameters, keep_unused)
        donated = _alias(main, parameters, kept, results, name)
        _set_type(main, block, values)
        _name_results(main, len(results))
        if trace.uses_chlo:
            legalize_chlo(trace.module)
        trace.module.operation.verify()
    plan = Plan(
        name=name,
        kept=tuple(kept),
        sources=tuple(sources),
        constants=tuple(constants),
        donated=tuple(donated),
        argument_names=tuple(p.name for p in parameters),
    )
    monitoring.record_event_duration_secs(
        monitoring.TRACE, time.perf_counter() - start, fun_name=name
    )
    return Staged(
        plan,
        trace.module,
        tuple(parameters),
        tuple(TensorType(r.shape, r.dtype) for r in results),
        tuple(TensorType(o.shape, o.dtype) for o in outputs),
        tuple(o.weak for o in outputs),
        out_tree,
    )


def _main(trace: Trace, name: str, types: list[ir.Type]) -> func.FuncOp:
    trace.module.operation.attributes["sym_name"] = ir.StringAttr.get(_symbol(name))
    main = func.FuncOp(
        "main", ir.FunctionType.get(types, []), ip=ir.InsertionPoint(trace.module.body)
    )
    main.attributes["sym_visibility"] = ir.StringAttr.get("public")
    return main


def _symbol(name: str) -> str:
    return "jit_" + "".join(c if c.isalnum() or c == "_" else "_" for c in name)


def _check_outputs(out: Any, name: str) -> None:
    for path, leaf in tree.flatten_with_paths(out):
        try:
            as_tracer(leaf)
        except NotAnArray as error:
            raise NotAnArray(
                f"{name!r} returned{f' at {path}' if path else ''} {leaf!r} of type "
                f"{type(leaf).__module__}.{type(leaf).__qualname__}, which is not an array; "
                "functions that are traced return arrays, scalars and pytrees of them"
            ) from error


def _route(
    trace: Trace,
    outputs: list[Tracer],
    tracers: list[Tracer],
    parameters: Sequence[Parameter],
    forward: bool,
) -> tuple[list[Source], list[Tracer]]:
    """Tells where each output comes from, and which values the module has to return."""
    arguments = {id(t): i for i, t in enumerate(tracers) if not parameters[i].donated}
    constants = {
        id(c.data if c.tracer is None else c.tracer): i
        for i, c in enumerate(trace.captured.values())
    }
    sources: list[Source] = []
    results: list[Tracer] = []
    for output in outputs:
        if forward and id(output) in arguments:
            sources.append(("argument", arguments[id(output)]))
        elif forward and id(output) in constants:
            sources.append(("constant", constants[id(output)]))
        else:
            sources.append(("result", len(results)))
            results.append(output)
    return sources, results


def _prune(block: ir.Block, parameters: Sequence[Parameter], keep_unused: bool) -> list[int]:
    kept = []
    position = 0
    for i in range(len(parameters)):
        if keep_unused or next(iter(block.arguments[position].uses), None) is not None:
            kept.append(i)
            position += 1
        else:
            block.erase_argument(position)
    return kept


def _set_type(main: func.FuncOp, block: ir.Block, values: list[ir.Value]) -> None:
    kind = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in values])
    main.attributes["function_type"] = ir.TypeAttr.get(kind)


def _name_results(main: func.FuncOp, count: int) -> None:
    named = ir.DictAttr.get
    main.attributes["res_attrs"] = ir.ArrayAttr.get(
        [
            named(
                {"jax.result_info": ir.StringAttr.get("result" if count == 1 else f"result[{i}]")}
            )
            for i in range(count)
        ]
    )


def _alias(
    main: func.FuncOp,
    parameters: Sequence[Parameter],
    kept: list[int],
    results: list[Tracer],
    name: str,
) -> list[int]:
    """Pairs donated parameters with results of the same type; returns those that found one."""
    free = list(range(len(results)))
    attributes: list[dict[str, ir.Attribute]] = [{} for _ in main.entry_block.arguments]
    donated, unusable = [], []
    for i, parameter in enumerate(parameters):
        if not parameter.donated:
            continue
        kind = parameter.type
        match = (
            next(
                (
                    j
                    for j in free
                    if (results[j].shape, results[j].dtype) == (kind.shape, kind.dtype)
                ),
                None,
            )
            if i in kept
            else None
        )
        if match is None:
            unusable.append(kind)
            continue
        free.remove(match)
        donated.append(i)
        i32 = ir.IntegerType.get_signless(32)
        attributes[kept.index(i)]["tf.aliasing_output"] = ir.IntegerAttr.get(i32, match)
    if donated:
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in attributes])
    if unusable:
        warn_user(
            f"Some donated buffers were not usable: {', '.join(map(str, unusable))} (no result of "
            f"{name!r} has that shape and dtype); they stay with the caller"
        )
    return donated
