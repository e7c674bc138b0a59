"""Conditionals on the platform: emitted into a trace, which has no platform, and resolved for one.

The index of such a ``stablehlo.case`` is a custom call that lists the platforms of each branch.
Neither reaches a compiler: `resolve_platforms` replaces both by the platform's branch.
"""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.errors import Unimplemented
from plugrt.stablehlo.attributes import text_of
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.regions import operations_within

_TARGET = "plugrt.platform_index"
_PLATFORMS = "plugrt.platforms"

BranchPlatforms = tuple[tuple[str, ...] | None, ...]
"""The platforms of each branch; None means all others."""


def platform_index(branches: BranchPlatforms, location: ir.Location) -> ir.Value:
    """Adds the custom call that stands for the number of the branch until the platform is known."""
    made = hlo.CustomCallOp(
        [ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))],
        [],
        call_target_name=_TARGET,
        loc=location,
    )
    made.operation.attributes[_PLATFORMS] = ir.ArrayAttr.get(
        [
            ir.UnitAttr.get()
            if names is None
            else ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names])
            for names in branches
        ]
    )
    index: ir.Value = made.operation.results[0]
    return index


def resolve_platforms(module: ir.Module, platforms: Sequence[str], title: str) -> None:
    """Replaces each conditional on the platform by the branch for these platforms.

    ``platforms`` are names of one platform; a branch for an earlier name is preferred. Raises
    `Unimplemented`, with the program's ``title``, if there is none.
    """
    # One by one, since a branch may contain conditionals, which are removed with it.
    while (index := _find_index(module)) is not None:
        branch = choose_branch(_read(index), platforms, title)
        for use in list(index.results[0].uses):
            _keep_branch(use.owner.operation, branch)
        index.erase()


def _find_index(module: ir.Module) -> ir.Operation | None:
    found = (
        op
        for op in operations_within(module.operation)
        if op.name == "stablehlo.custom_call"
        and text_of(op.attributes["call_target_name"]) == _TARGET
    )
    return next(found, None)


def _read(index: ir.Operation) -> BranchPlatforms:
    return tuple(
        tuple(map(text_of, names)) if isinstance(names, ir.ArrayAttr) else None
        for names in index.attributes[_PLATFORMS]
    )


def choose_branch(branches: BranchPlatforms, platforms: Sequence[str], title: str) -> int:
    """Returns the number of the branch for a platform, by its names; raises `Unimplemented`."""
    for platform in platforms:
        for i, names in enumerate(branches):
            if names is not None and platform in names:
                return i
    if None in branches:
        return branches.index(None)
    known = ", ".join(name for names in branches if names for name in names)
    raise Unimplemented(
        f"platform_dependent in {title!r} has no function for {platforms[0]!r} and no default; it "
        f"has functions for {known or 'no platform'}"
    )


def _keep_branch(case: ir.Operation, branch: int) -> None:
    *body, end = [view.operation for view in case.regions[branch].blocks[0].operations]
    returned = [*end.operands]
    for op in body:
        op.move_before(case)
    for old, new in zip(list(case.results), returned, strict=True):
        old.replace_all_uses_with(new)
    case.erase()
