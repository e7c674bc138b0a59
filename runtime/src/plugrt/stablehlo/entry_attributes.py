"""Attributes on the parameters and results of ``main``: shardings, layouts and memories."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from plugrt.stablehlo.attributes import symbol_of
from plugrt.stablehlo.bindings import ir, register_shardy
from plugrt.stablehlo.modules import bytecode
from plugrt.stablehlo.regions import terminator

Attributes = tuple[tuple[str, str], ...]
"""Names and texts for one parameter or result."""

LAYOUT = "mhlo.layout_mode"
"""``auto``, ``default`` or XLA's text of a layout."""
MEMORY = "mhlo.memory_kind"
"""``device``, ``pinned_host`` or another kind that the device has."""
SHARDING = "sdy.sharding"
"""Shardy's text of a sharding."""
DONOR = "jax.buffer_donor"
"""Without a value: the memory may be used for any result whose parts have its size."""
_OF_MEMORY = (LAYOUT, MEMORY, SHARDING)
ALIAS = "tf.aliasing_output"
"""The number of the result that gets the memory."""


@dataclass(frozen=True, slots=True)
class EntryAttributes:
    """The attributes of each parameter and each result of ``main``."""

    parameters: tuple[Attributes, ...]
    results: tuple[Attributes, ...]
    partitions: int = 1
    """The number of devices over which the program is divided."""
    shardy: bool = True
    """Whether the partitioner is Shardy, and not GSPMD."""
    here: tuple[int, ...] = ()
    """If the program is divided over processes, the partitions that this one runs."""

    def add_to(self, module: ir.Module) -> ir.Module:
        """Returns a copy of a module with these attributes in addition to its own.

        A parameter donated to a result whose layout or sharding differs or is the compiler's choice
        no longer names that result: the program may use its memory, as in JAX.
        """
        if self.partitions > 1:
            register_shardy(module.context)
        with module.context, ir.Location.unknown():
            copy = ir.Module.parse(bytecode(module))
            main = next(op for op in copy.body.operations if symbol_of(op.operation) == "main")
            given = _read(main, "arg_attrs", len(self.parameters))
            stated = _read(main, "res_attrs", len(self.results))
            _add(given, self.parameters)
            _add(stated, self.results)
            for attributes in given:
                _part_layouts(attributes, stated, divided=self.partitions > 1)
            _write(main, "arg_attrs", given)
            _write(main, "res_attrs", stated)
            place_results(main, [dict(each).get(MEMORY) for each in self.results])
            if self.partitions > 1:
                set_counts(copy, partitions=self.partitions)
        return copy


def set_counts(module: ir.Module, **counts: int) -> None:
    """Sets the numbers of ``replicas`` and ``partitions`` in a module's attributes."""
    kind = ir.IntegerType.get_signless(32, module.context)
    for name, count in counts.items():
        module.operation.attributes[f"mhlo.num_{name}"] = ir.IntegerAttr.get(kind, count)


def donated_parameters(module: ir.Module, marks: Collection[str] = (ALIAS, DONOR)) -> list[int]:
    """Returns the numbers of the donated parameters of ``main``.

    These are the parameters with one of the marks: with only `ALIAS`, those that name the result.
    """
    main = next(op for op in module.body.operations if symbol_of(op.operation) == "main")
    with module.context:
        given = _read(main, "arg_attrs", 0)
    return [i for i, attributes in enumerate(given) if {*marks} & attributes.keys()]


def forget_donation(main: Any) -> None:
    """Removes the donation marks of a function's parameters."""
    if "arg_attrs" in main.attributes:
        given = _read(main, "arg_attrs", 0)
        for attributes in given:
            attributes.pop(ALIAS, None)
            attributes.pop(DONOR, None)
        _write(main, "arg_attrs", given)


def move_attributes(source: Any, target: object, first: int, first_result: int) -> None:
    """Copies attributes of parameters and results from one function to another.

    Skips the ``first`` parameters and ``first_result`` results of ``source``. In the copies,
    donated parameters refer to results by the numbers of ``target``.
    """
    if "arg_attrs" in source.attributes:
        given = _read(source, "arg_attrs", 0)[first:]
        for attributes in given:
            if ALIAS in attributes:
                number = ir.IntegerAttr(attributes[ALIAS])
                attributes[ALIAS] = ir.IntegerAttr.get(number.type, number.value - first_result)
        _write(target, "arg_attrs", given)
    if "res_attrs" in source.attributes:
        _write(target, "res_attrs", _read(source, "res_attrs", 0)[first_result:])


def _read(main: Any, name: str, count: int) -> list[dict[str, ir.Attribute]]:
    if name not in main.attributes:
        return [{} for _ in range(count)]
    return [{a.name: a.attr for a in each} for each in main.attributes[name]]


def _add(found: list[dict[str, ir.Attribute]], new: Sequence[Attributes]) -> None:
    for attributes, texts in zip(found, new, strict=True):
        attributes.update((name, _read_value(name, text)) for name, text in texts)


def _read_value(name: str, text: str) -> ir.Attribute:
    if name == DONOR:
        return ir.BoolAttr.get(True)
    return ir.Attribute.parse(text) if name == SHARDING else ir.StringAttr.get(text)


def _part_layouts(
    parameter: dict[str, ir.Attribute], results: Sequence[dict[str, ir.Attribute]], divided: bool
) -> None:
    if ALIAS not in parameter:
        return
    result = results[ir.IntegerAttr(parameter[ALIAS]).value]
    chosen = divided and SHARDING not in result  # the compiler may choose another one
    if chosen or any(str(parameter.get(name)) != str(result.get(name)) for name in _OF_MEMORY):
        del parameter[ALIAS]
        parameter[DONOR] = ir.BoolAttr.get(True)


def _write(main: Any, name: str, attributes: Sequence[dict[str, ir.Attribute]]) -> None:
    main.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in attributes])


PLACE = "annotate_device_placement"
_PLACEMENT = "_xla_buffer_placement"


def place_results(main: Any, kinds: Sequence[str | None]) -> None:
    """Moves results of ``main`` to kinds of memory by custom calls, as in JAX's programs.

    The attribute ``mhlo.memory_kind`` states where a caller expects the result, but moves nothing:
    with it alone XLA for GPUs computes the result in the device's memory.
    """
    end = terminator(main.regions[0].blocks[0])
    for i, kind in enumerate(kinds):
        if kind is not None:
            end.operands[i] = _place(end.operands[i], kind, ir.InsertionPoint(end))


def _place(value: Any, kind: str, where: object) -> object:
    placement = ir.DictAttr.get({_PLACEMENT: ir.StringAttr.get(kind)})
    call = ir.Operation.create(
        "stablehlo.custom_call",
        results=[value.type],
        operands=[value],
        attributes={
            "call_target_name": ir.StringAttr.get(PLACE),
            "has_side_effect": ir.BoolAttr.get(True),
            "mhlo.frontend_attributes": placement,
        },
        ip=where,
    )
    return call.results[0]
