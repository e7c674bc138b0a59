"""`refuse_custom_calls`: limits the functions of the server that programs may call."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from plugrt.errors import PermissionDenied, PlugrtError
from plugrt.interface import HOST_CALLBACK, Program
from plugrt.wire.hlo_proto import last_text, read_module
from plugrt.wire.mlir_bytecode import MAGIC
from plugrt.wire.protobuf import messages

_ALLOWED = frozenset({
    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement",
    "LayoutConstraint", "TopK", "Qr", "ProductOfElementaryHouseholderReflectors",
})  # fmt: skip
"""Targets that XLA's compiler replaces: no function of that name is called."""
_PREFIXES = ("mhlo.", "chlo.", "xla.sdy.")
_COMPUTATIONS, _INSTRUCTIONS, _TARGET = 3, 2, 28


def refuse_custom_calls(program: Program, allowed: Collection[str]) -> None:
    """Raises `PermissionDenied` for a program that names a target outside of the list.

    A program can name any function that is registered in the process, and pass it arguments that
    it does not expect: jaxlib's functions then crash. ``*`` in ``allowed`` allows all. A program
    with ``callbacks`` may call `HOST_CALLBACK`: `Callbacks.bind` has checked the numbers.
    """
    if "*" in allowed:
        return
    try:
        found = [*_targets(program)]
    except (PlugrtError, ValueError) as error:
        raise PermissionDenied(
            f"the server cannot read which functions the program {program.name!r} calls, and runs "
            f"no such program: {error}"
        ) from None
    own = {HOST_CALLBACK} if program.callbacks else set()
    for target in {*found} - own:
        if target not in _ALLOWED and target not in allowed and not target.startswith(_PREFIXES):
            raise PermissionDenied(
                f"the program {program.name!r} calls {target!r:.80}, which the server does not "
                f"allow; whoever starts it can: plugrt serve --allow-custom-call {target:.80}"
            )


def _targets(program: Program) -> Iterator[str]:
    code = program.code
    if program.format == "mlir":
        is_text = not code.startswith(MAGIC)
        # The name of an operation may be written with escapes in text.
        if b"custom_call" not in code and not (is_text and b"\\" in code):
            return
        from plugrt.programs.parsing import parse_program
        from plugrt.stablehlo.bindings import ir

        found: list[str] = []

        def note(operation: Any) -> Any:
            attributes = operation.attributes
            if "call_target_name" in attributes:
                found.append(ir.StringAttr(attributes["call_target_name"]).value)
            return ir.WalkResult.ADVANCE

        parse_program(program)[0].operation.walk(note)
        yield from found
        return
    for computation in messages(read_module(program), _COMPUTATIONS):
        for instruction in messages(computation, _INSTRUCTIONS):
            if target := last_text(instruction, _TARGET):
                yield target
