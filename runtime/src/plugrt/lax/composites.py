"""`composite`: user-defined operations, which platforms implement or decompose."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError, LeakedTracer, Unimplemented
from plugrt.execution.arrays.array import Array
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.control_flow.eager import launch
from plugrt.lax.control_flow.python_control_flow import run_chosen
from plugrt.lax.custom_calls import call_attribute
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.types import element_type, tensor_type
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import active_trace
from plugrt.tracing.inner_calls import find_symbol
from plugrt.tracing.mlir_constants import dense_attribute
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace_function import make_parameters, stage
from plugrt.tracing.tracer import Tracer

P = ParamSpec("P")
R = TypeVar("R")
_NAME = re.compile(r"[a-zA-Z]\w*(\.[\w$]+)+", re.ASCII)
"""The names that StableHLO accepts."""


@with_argument_errors
def composite(decomposition: Callable[P, R], name: str, version: int = 0) -> Callable[P, R]:
    """Returns a function of arrays that is one operation, ``name``, in programs.

    ``decomposition`` defines it and runs by default; a platform's compiler may implement the
    operation by its name and ``version``, and so may a lowering (`plugrt.plugins`). Positional
    arguments are pytrees of arrays; keyword arguments are the operation's attributes: text,
    numbers, booleans, NumPy's arrays and dtypes, lists, tuples and dicts of them; None omits one.
    Raises `ArgumentTypeError` for a decomposition that is no function, names that are no text and
    attributes of other types, and, when called, `LeakedTracer` for a traced array that is an
    attribute or that the decomposition closes over: pass it as an argument. As
    ``jax.lax.composite``, except that a name without a dot, which StableHLO refuses, raises at
    once.

    >>> double = lax.composite(lambda x: x + x, name="my.double")
    >>> double(xp.asarray([1.0, 2.0]))
    Array([2., 4.], dtype=float32)
    """
    if not callable(decomposition):
        raise ArgumentTypeError(f"composite takes a function; got {decomposition!r:.60}")
    _check_name(name, version)

    @functools.wraps(decomposition)
    def call(*args: object, **attributes: object) -> Any:
        _check_attributes(name, attributes)
        stated = {key: value for key, value in attributes.items() if value is not None}
        operation = _Composite(name, version, decomposition, attributes, stated)

        def run_in_python(functions: Sequence[Callable[..., object]], args: object) -> Any:
            return run_chosen(functools.partial(functions[0], **attributes), args)

        key = (name, version, _freeze(name, attributes))
        return launch(
            name,
            [decomposition],
            key,
            {"args": args},
            operation.add,
            run_in_python,
            reads_once=False,
        )

    return call


class _Composite:
    """One call of a composite."""

    def __init__(
        self,
        name: str,
        version: int,
        decomposition: Callable[..., object],
        keywords: Mapping[str, object],
        attributes: Mapping[str, object],
    ) -> None:
        self._name, self._version = name, version
        self._decompose = functools.partial(decomposition, **keywords)
        self._attributes = attributes

    def add(self, args: object) -> Any:
        """Adds the operation to the current trace, and returns its results."""
        trace = active_trace()
        leaves, spec = pytrees.flatten(args)
        staged = self._stage(leaves, spec)
        symbol, claims = find_symbol(trace, staged)
        closed_over = [as_tracer(data) for data in staged.plan.constants]
        made = hlo.CompositeOp(
            [trace.mlir_type(t.shape, t.dtype) for t in staged.result_types],
            [operand.value for operand in (*map(_typed, leaves, staged.types), *closed_over)],
            name=self._name,
            decomposition=symbol,
            composite_attributes=_attributes(self._name, self._attributes),
            version=self._version,
            loc=trace.location(),
        )
        trace.claims.add_to(made.operation, claims)
        if trace.types is not None:
            for value, sharding in zip(made.operation.results, staged.out_shardings, strict=True):
                trace.types.set(value, sharding)
        results = [
            Tracer(value, trace, weak=weak)
            for value, weak in zip(made.operation.results, staged.weak_outputs, strict=True)
        ]
        return pytrees.unflatten(staged.out_tree, results)

    def _stage(self, leaves: Sequence[Tracer], spec: pytrees.PyTreeSpec) -> Staged:
        types = [(x.shape, x.dtype, x.weak, x.sharding_type) for x in leaves]
        names = [f"args[{i}]" for i in range(len(leaves))]
        staged = stage(
            lambda *flat: self._decompose(*pytrees.unflatten(spec, flat)),
            make_parameters(types, names),
            name=self._name,
            axes=active_trace().axes,
            keep_unused=True,
            forward=False,
        )
        if any(type(data) is Tracer for data in staged.plan.constants):
            raise LeakedTracer(
                f"the decomposition of the composite {self._name!r} closes over a traced array; "
                "pass it as an argument of the composite"
            )
        if staged.ordered:
            raise Unimplemented(
                f"the decomposition of the composite {self._name!r} calls Python in order, which "
                "takes tokens that a composite cannot have. Call it outside of the composite, or "
                "without ordered=True"
            )
        return staged


def _typed(x: Tracer, kind: Any) -> Tracer:
    return x if x.dtype == kind[1] else Tracer.from_literal(x.trace, x.scalar, kind[1])


def _check_name(name: object, version: object) -> None:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"composite takes its name as text; got {name!r:.60}")
    if not _NAME.fullmatch(name):
        raise ArgumentError(
            "the name of a composite has a dot, and letters, digits and _ around it, as in "
            f"'my.operation'; got {name!r:.60}"
        )
    if not isinstance(version, int) or not -(2**31) <= version < 2**31:
        raise ArgumentTypeError(
            f"the version of the composite {name!r} is a number of 32 bits; got {version!r:.60}"
        )


def _check_attributes(name: str, attributes: Mapping[str, object]) -> None:
    for key, value in attributes.items():
        for leaf in pytrees.leaves(value):
            if isinstance(leaf, Tracer):
                raise LeakedTracer(
                    f"the attribute {key!r} of the composite {name!r} is a traced array; pass it "
                    "by position, as an argument"
                )
            if isinstance(leaf, Array):
                raise ArgumentTypeError(
                    f"the attribute {key!r} of the composite {name!r} is an array on a device; "
                    "attributes are known when a program is compiled: give a NumPy array, or pass "
                    "it by position"
                )


def _attributes(name: str, attributes: Mapping[str, object]) -> ir.DictAttr:
    return ir.DictAttr.get({key: _attribute(name, key, v) for key, v in attributes.items()})


def _attribute(name: str, key: str, value: object) -> ir.Attribute:
    match value:
        case list() | tuple():
            return ir.ArrayAttr.get([_attribute(name, key, each) for each in value])
        case dict():
            return _attributes(name, value)
        case bytes():
            return ir.StringAttr.get(value)
        case np.dtype():
            return ir.TypeAttr.get(element_type(value))
        case np.ndarray():
            return dense_attribute(value, tensor_type(value.shape, value.dtype))
    try:
        return call_attribute(key, value)
    except ArgumentError:
        raise ArgumentTypeError(
            f"the attribute {key!r} of the composite {name!r} is {value!r:.60} of type "
            f"{type(value).__qualname__}; attributes are text, numbers, booleans, NumPy's arrays "
            "and dtypes, and lists, tuples and dicts of them"
        ) from None


def _freeze(name: str, value: object) -> object:
    """Returns attributes in a hashable form, for the key of a cache."""
    match value:
        case list() | tuple():
            return type(value), *(_freeze(name, each) for each in value)
        case dict():
            return tuple((key, _freeze(name, each)) for key, each in value.items())
        case np.ndarray():
            return value.dtype, value.shape, value.tobytes()
    return type(value), value
