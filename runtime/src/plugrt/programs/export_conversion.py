"""Converts JAX exports to programs for a backend: for its platform, devices and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plugrt.errors import ArgumentError, MissingTraceExtra, ProgramError, Unimplemented
from plugrt.interface import Client, Device, Program, TensorType, Topology
from plugrt.plugins.selection.backends import process_backends
from plugrt.programs.exported import Dimension, Exported, ExportedProgram
from plugrt.programs.parsing import convert_module, has_bindings, main_types

if TYPE_CHECKING:
    from plugrt.stablehlo.bindings import ir


def is_for(exported: Exported, target: Client | Topology) -> bool:
    """Whether an export is for a backend, or disables that check."""
    names = {*exported.platforms} & {*process_backends().platforms_of(target)}
    return bool(names) or "platform" in exported.disabled_safety_checks


def choose_platform(exported: Exported, target: Client | Topology) -> int | None:
    """Returns the index of the platform, an argument of the module; None for one platform.

    Raises `ArgumentError` if the export is for other platforms. If the check was disabled at
    export, returns the index of the first platform, as in JAX.
    """
    names = process_backends().platforms_of(target)
    for i, platform in enumerate(exported.platforms):
        if platform in names:
            return i if len(exported.platforms) > 1 else None
    if "platform" in exported.disabled_safety_checks:
        return 0 if len(exported.platforms) > 1 else None
    raise ArgumentError(
        f"{exported.fun_name!r} was exported for {', '.join(exported.platforms)}; it cannot run on "
        f"{' or '.join(sorted(names))}. Fix: export it with platforms=[…, {target.platform!r}]; "
        "or, for one whose operations any platform has, with "
        "disabled_checks=[jax.export.DisabledSafetyCheck.platform()]"
    )


def read_module(
    program: ExportedProgram, target: Client | Topology, types: Sequence[TensorType]
) -> tuple[ir.Module, Sequence[TensorType]]:
    """Returns an export's module for a platform and argument types, and its parameter types.

    ``types`` are the types of all arguments; the module has parameters for those that it uses.
    Raises as `choose_platform`, `ShapeError` for shapes that the module refuses, and `ProgramError`
    for an export that contradicts its module.
    """
    return read_module_for(program, choose_platform(program.exported, target), types)


def read_module_for(
    program: ExportedProgram, platform: int | None, types: Sequence[TensorType]
) -> tuple[ir.Module, Sequence[TensorType]]:
    """As `read_module`, for a platform by index; None if the export is for one platform."""
    from plugrt.stablehlo.modules import parse
    from plugrt.stablehlo.refinement import refine

    exported = program.exported
    module = parse(program.code, program.name)
    kept = [types[i] for i in exported.module_kept_var_idx]
    if exported.needs_refinement:
        title = f"the export {exported.fun_name!r}"
        module = refine(module, kept, platform, title)
    inputs, outputs = main_types(module, program.name)
    for what, found, wanted in (
        ("takes", inputs, kept),
        ("returns", outputs, [aval.tensor_type for aval in exported.out_avals]),
    ):
        if len(found) != len(wanted) or not all(map(_is_as_stated, found, wanted)):
            raise ProgramError(
                f"the export {exported.fun_name!r} is damaged: its module {what} "
                f"{', '.join(map(str, found)) or 'nothing'}; it states "
                f"{', '.join(map(str, wanted)) or 'nothing'}"
            )
    return module, inputs


def _is_as_stated(found: TensorType, wanted: TensorType) -> bool:
    stated: Sequence[Dimension] = wanted.shape
    return (found.dtype, len(found.shape)) == (wanted.dtype, len(stated)) and all(
        n == size or isinstance(n, str) for n, size in zip(stated, found.shape, strict=True)
    )


def find_devices(program: ExportedProgram, device: Device, explicit: bool) -> list[Device]:
    """Returns the devices of an export: ``device``, or as many as the export is for.

    Several devices are the first ones of the device's backend. JAX states one device for an export
    without shardings, although it may have a `shard_map` over an abstract mesh: then the number is
    the size of that mesh. Raises `ArgumentError` if there are fewer devices, or if the user named
    one device for an export that needs several.
    """
    exported, client = program.exported, device.client
    count, reason = exported.nr_devices, "was exported for"
    if count == 1 and has_bindings():
        # Imported late: it imports StableHLO's bindings.
        from plugrt.stablehlo.inlined_meshes import manual_device_count

        count, reason = manual_device_count(program.code, program.name), "has a shard_map over"
    if count == 1:
        return [device]
    if explicit:
        raise ArgumentError(
            f"{exported.fun_name!r} {reason} {count} devices; it cannot run on {device!r} "
            "alone. Fix: name a backend (backend=) instead, of which the first ones are taken"
        )
    found = list(client.addressable_devices())
    if len(found) < count:
        raise ArgumentError(
            f"{exported.fun_name!r} {reason} {count} devices; {client.backend_name} has "
            f"{len(found)} here. CPUs can have more: JAX_NUM_CPU_DEVICES={count}"
        )
    if exported.ordered_effects:
        raise Unimplemented(
            f"{exported.fun_name!r} was exported for {count} devices with ordered effects "
            f"({', '.join(exported.ordered_effects)}): effects have an order on one device only"
        )
    return found[:count]


@dataclass(frozen=True, slots=True)
class ConvertedExport:
    """An export converted for a backend and concrete shapes."""

    program: Program
    inputs: Sequence[TensorType]
    """The types of the arguments that the module uses."""
    donated: Sequence[int] = ()
    """The indices of donated inputs."""


def convert_export(
    program: ExportedProgram,
    target: Client | Topology,
    types: Sequence[TensorType] | None = None,
) -> ConvertedExport:
    """Returns an export converted for a backend and argument types; None: the export's own types.

    Raises as `read_module`, `ArgumentError` if shapes are symbolic and ``types`` is None, and
    `MissingTraceExtra` if the conversion needs jaxlib and it is missing.
    """
    exported = program.exported
    if exported.is_symbolic and types is None:
        takes = ", ".join(str(aval.tensor_type) for aval in exported.in_avals)
        raise ArgumentError(
            f"{exported.fun_name!r} was exported with symbolic shapes "
            f"({takes}): it is compiled when it is called, for "
            "the shapes of its arguments. Fix: export it for the shapes that it is wanted for"
        )
    types = exported.static_types() if types is None else types
    if not has_bindings():
        require_bindings(exported)
        choose_platform(exported, target)
        return ConvertedExport(program, [types[i] for i in exported.module_kept_var_idx])
    from plugrt.stablehlo.entry_attributes import donated_parameters

    module, inputs = read_module(program, target, types)
    donated = donated_parameters(module)
    version = (
        target.stablehlo_current_version
        if isinstance(target, Topology)
        else target.capabilities.stablehlo_current_version
    )
    return ConvertedExport(convert_module(module, program.name, version), inputs, donated)


def require_bindings(exported: Exported) -> None:
    """Raises `MissingTraceExtra` if the conversion needs jaxlib and it is missing."""
    if has_bindings():
        return
    for needed, why in (
        (exported.is_symbolic, "has symbolic shapes"),
        (
            len(exported.platforms) > 1,
            f"is for several platforms ({', '.join(exported.platforms)})",
        ),
        (bool(exported.ordered_effects), "has ordered effects"),
    ):
        if needed:
            raise MissingTraceExtra(
                f"the export {exported.fun_name!r} {why}: making a program of it needs jaxlib's "
                'passes: pip install "plugrt[trace]"'
            )
