"""Reads the files of ``jax.export``: a flatbuffer, whose schema is JAX's ``serialization.fbs``.

https://github.com/jax-ml/jax/blob/main/jax/_src/export/serialization.fbs. A field keeps its number
for ever; new ones are added at the end. So a file of a newer JAX is read as long as the calling
convention of its module is known, which has a version of its own
(https://docs.jax.dev/en/latest/export/export.html#calling-convention-versions).
"""

from __future__ import annotations

from plugrt.errors import ProgramError
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.programs.export_arrays import ARGUMENTS, RESULTS, read_avals, read_shardings
from plugrt.programs.exported import Exported
from plugrt.programs.exported_trees import ExportedTree
from plugrt.wire.flatbuffers import Table, require, root_table

MLIR_MAGIC = b"ML\xefR"
CALLING_CONVENTIONS = range(9, 11)
"""The versions that JAX has written and read since 2024, up to 0.10 at least."""
_DEEPEST = 200
"""The maximum depth of a pytree: reading and making one is recursive."""
_MOST_DEVICES = 1 << 20

# Field numbers, by table; `plugrt.programs.export_arrays` has those for arrays.
_FUN_NAME, _IN_TREE, _OUT_TREE = 1, 2, 4
_NR_DEVICES_SHORT, _PLATFORMS = 6, 9
_ORDERED_EFFECTS, _UNORDERED_EFFECTS, _DISABLED_CHECKS, _MODULE = range(10, 14)
_CALLING_CONVENTION, _KEPT, _VJP, _NR_DEVICES, _JAX_VERSION = 14, 15, 17, 18, 26
_TREE_KIND, _TREE_CHILDREN, _TREE_NAMES, _TREE_CUSTOM_NAME, _TREE_AUXDATA = range(5)
_EFFECT_NAME = 0
_CHECK_KIND, _CHECK_TARGET = range(2)

_TREE_KINDS = ("leaf", "none", "tuple", "list", "dict", "custom")
_CHECK_OF_PLATFORM, _CHECK_OF_CUSTOM_CALL = 0, 1


def is_like_export(code: bytes) -> bool:
    """Whether bytes that are not a program seem to be an export, complete or not."""
    return MLIR_MAGIC in code


@with_argument_errors
def deserialize(blob: bytes | bytearray | memoryview) -> Exported:
    """Reads the bytes of ``jax.export.Exported.serialize``, without JAX.

    Raises `ProgramError` for bytes that are not an export, and for one that is damaged, truncated,
    or of an unknown version. `plugrt.compile` checks the file's
    description of its module against the module. As ``jax.export.deserialize``.
    """
    return read_export(bytes(memoryview(blob)), "<bytes>")


def read_export(code: bytes, title: str) -> Exported:
    """Returns an export; errors name it ``title``."""
    try:
        table = root_table(code)
        module = table.content(_MODULE)
        if module is None or not module.startswith(MLIR_MAGIC):
            raise ValueError("it holds no module")
        _check_version(table, title)
        return _read(table, module)
    except ProgramError:
        raise
    except ValueError as error:
        damaged = "is an export of JAX that is damaged or cut short"
        what = damaged if is_like_export(code) else "is not an export of JAX"
        raise ProgramError(f"{title} {what}: {error}") from error


def _check_version(table: Table, title: str) -> None:
    version = table.scalar(_CALLING_CONVENTION, "H")
    if version in CALLING_CONVENTIONS:
        return
    first, last = CALLING_CONVENTIONS[0], CALLING_CONVENTIONS[-1]
    writer = table.text(_JAX_VERSION)
    age = "newer" if version > last else "older"
    cure = (
        f"update plugrt, or export with JAX_EXPORT_CALLING_CONVENTION_VERSION={last}"
        if version > last
        else "export the function again with a JAX of this year"
    )
    raise ProgramError(
        f"{title} is an export of JAX{f' {writer}' if writer else ''} in version {version} of the "
        f"calling convention; plugrt reads {first} to {last}: the JAX that wrote it is {age}. "
        f"Fix: {cure}"
    )


def _read(table: Table, module: bytes) -> Exported:
    in_tree = _read_tree(require(table.table(_IN_TREE), "in_tree"))
    out_tree = _read_tree(require(table.table(_OUT_TREE), "out_tree"))
    in_avals = read_avals(table, ARGUMENTS, in_tree.num_leaves)
    out_avals = read_avals(table, RESULTS, out_tree.num_leaves)
    devices = table.scalar(_NR_DEVICES, "I") or table.scalar(_NR_DEVICES_SHORT, "h")
    if not 1 <= devices <= _MOST_DEVICES:
        raise ValueError(f"it is for {devices} devices")
    platforms = tuple(table.texts(_PLATFORMS))
    if not platforms:
        raise ValueError("it names no platform")
    return Exported(
        fun_name=require(table.text(_FUN_NAME), "name"),
        in_tree=in_tree,
        in_avals=in_avals,
        out_tree=out_tree,
        out_avals=out_avals,
        in_shardings=read_shardings(table, ARGUMENTS, in_avals, devices),
        out_shardings=read_shardings(table, RESULTS, out_avals, devices),
        nr_devices=devices,
        platforms=platforms,
        ordered_effects=_read_effects(table, _ORDERED_EFFECTS),
        unordered_effects=_read_effects(table, _UNORDERED_EFFECTS),
        disabled_safety_checks=tuple(map(_read_check, table.tables(_DISABLED_CHECKS))),
        calling_convention_version=table.scalar(_CALLING_CONVENTION, "H"),
        module_kept_var_idx=_read_kept(table, len(in_avals)),
        mlir_module_serialized=module,
        has_vjp=table.table(_VJP) is not None,
        jax_version=table.text(_JAX_VERSION),
    )


def _read_kept(table: Table, count: int) -> tuple[int, ...]:
    kept = table.scalars(_KEPT, "H")
    if kept != sorted(set(kept)) or any(i >= count for i in kept):
        raise ValueError(f"its module takes the arguments {kept[:8]} of {count}")
    return tuple(kept)


def _read_effects(table: Table, field: int) -> tuple[str, ...]:
    return tuple(effect.text(_EFFECT_NAME) or "" for effect in table.tables(field))


def _read_check(check: Table) -> str:
    kind = check.scalar(_CHECK_KIND, "b")
    if kind == _CHECK_OF_CUSTOM_CALL:
        return f"custom_call:{check.text(_CHECK_TARGET) or ''}"
    return "platform" if kind == _CHECK_OF_PLATFORM else f"kind {kind}"


def _read_tree(table: Table, depth: int = 0) -> ExportedTree:
    if depth > _DEEPEST:
        raise ValueError(f"its pytrees nest deeper than {_DEEPEST} levels")
    number = table.scalar(_TREE_KIND, "b")
    if not 0 <= number < len(_TREE_KINDS):
        raise ValueError(f"its pytrees have a container of the kind {number}")
    kind = _TREE_KINDS[number]
    children = tuple(_read_tree(child, depth + 1) for child in table.tables(_TREE_CHILDREN))
    names = tuple(table.texts(_TREE_NAMES))
    if children and kind in ("leaf", "none"):
        raise ValueError(f"its pytrees have a {kind} with {len(children)} children")
    if kind == "dict" and (len(names) != len(children) or len(set(names)) != len(names)):
        raise ValueError(f"its pytrees have a dict of {len(children)} values under {names[:8]}")
    return ExportedTree(
        kind,
        children,
        names,
        table.text(_TREE_CUSTOM_NAME) or "",
        table.content(_TREE_AUXDATA) or b"",
    )
