"""What `plugrt.interface` checks of the values that callers and backends hand to its classes."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from plugrt.errors import ArgumentTypeError, InvalidArgument, Unimplemented

INTEGER = (int, np.integer)
"""The types of integers, for `isinstance`."""
_INT32 = np.iinfo(np.int32)


def is_sequence(value: object) -> bool:
    """Whether it has a length and numbered items; excludes text, bytes and 0-d arrays."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def is_iterable(value: object) -> bool:
    """Whether `iter` accepts it."""
    try:
        iter(value)  # type: ignore[call-overload]
    except TypeError:  # also of an array without dimensions, which is a collections.abc.Iterable
        return False
    return True


def require_types(value: object, types: Mapping[str, Any]) -> None:
    """Raises `ArgumentTypeError` unless the fields of a value are of these types."""
    for name, expected in types.items():
        found = getattr(value, name)
        if not isinstance(found, expected):
            wanted = getattr(expected, "__name__", str(expected))
            raise ArgumentTypeError(
                f"{type(value).__name__}: {name} is {found!r:.60}, not {wanted}"
            )


def require_number(name: str, value: Any, least: int) -> None:
    """Raises `InvalidArgument` unless a capability is None or an integer from ``least`` on."""
    number = isinstance(value, INTEGER) and not isinstance(value, bool)
    if value is not None and not (number and value >= least):
        raise InvalidArgument(
            f"the backend declares {name} as {value!r:.60}; it is an integer from {least} on, or "
            "None"
        )


def require_rank(layout: object, shape: tuple[int, ...]) -> None:
    """Raises `InvalidArgument` unless a layout orders as many dimensions as a shape has."""
    from plugrt.interface.memory_layout import Layout  # not needed by every start

    if not isinstance(layout, Layout):
        raise ArgumentTypeError(f"a layout is a plugrt.layout.Layout; got {layout!r:.60}")
    if len(layout.major_to_minor) != len(shape):
        raise InvalidArgument(
            f"{layout!r} orders {len(layout.major_to_minor)} dimensions; the array of the shape "
            f"{shape} has {len(shape)}"
        )


def require_callback(callback: object, of: str = "on_ready") -> None:
    """Raises `ArgumentTypeError` unless it is callable: a call fails on another thread."""
    if not callable(callback):
        raise ArgumentTypeError(f"{of} takes a function; got {callback!r:.60}")


def device_id_rows(device_ids: Any) -> tuple[tuple[int, ...], ...]:
    """Converts a device assignment's ids, in nested sequences of any kind, to tuples of `int`.

    Raises `ArgumentTypeError` for other objects than rows of integers, `InvalidArgument` for rows
    that are empty or of different lengths, and for a device that appears twice.
    """
    try:
        if not (is_sequence(device_ids) and all(map(is_sequence, device_ids))):
            raise TypeError
        rows = tuple([tuple(map(operator.index, row)) for row in device_ids])
    except TypeError:
        raise ArgumentTypeError(
            "DeviceAssignment takes rows of device ids, a sequence for each replica; got "
            f"{device_ids!r:.60}"
        ) from None
    if not rows or not rows[0]:
        raise InvalidArgument("a device assignment needs at least one replica and partition")
    if len({*map(len, rows)}) != 1:
        raise InvalidArgument(
            "every replica of a device assignment needs as many partitions; found "
            f"{[len(row) for row in rows]}"
        )
    flat = (*chain.from_iterable(rows),)
    if len(set(flat)) != len(flat):
        raise InvalidArgument(f"a device appears twice in the device assignment {flat}")
    return rows


EFFORTS = {
    "exec_time_optimization_effort": float,
    "memory_fitting_effort": float,
    "optimization_level": int,
    "memory_fitting_level": int,
}
"""How hard a compiler tries: options that are no XLA flags, and the types of their values."""


def check_overrides(env_overrides: Mapping[Any, Any], what: str = "env_overrides") -> None:
    """Raises `ArgumentTypeError` unless they are XLA's options, plain values by name."""
    for name, value in env_overrides.items():
        kind = EFFORTS.get(name)
        if kind is not None and (isinstance(value, bool) or not isinstance(value, int | kind)):
            raise ArgumentTypeError(f"{name} of {what} is {value!r:.60}; expected {kind.__name__}")
        if not (isinstance(name, str) and isinstance(value, str | bool | int | float)):
            raise ArgumentTypeError(
                f"{what} are XLA options by name, each a str, bool, int or float; got "
                f"{name!r:.60}: {value!r:.60}"
            )


def check_counts(num_replicas: int, num_partitions: int, assigned: tuple[int, int] | None) -> None:
    """Raises `InvalidArgument` for less than one, and for others than a device assignment has."""
    if num_replicas < 1 or num_partitions < 1:
        raise InvalidArgument(
            f"num_replicas and num_partitions must be at least 1; got {num_replicas} "
            f"and {num_partitions}"
        )
    if assigned and assigned != (num_replicas, num_partitions):
        raise InvalidArgument(
            f"the device assignment is {assigned[0]} x {assigned[1]} but the options "
            f"ask for {num_replicas} replicas x {num_partitions} partitions"
        )


def check_auto_mesh(num_partitions: int, shape: tuple[Any, ...], ids: tuple[Any, ...]) -> None:
    """Raises unless a mesh has each partition once."""
    if not all(isinstance(i, INTEGER) for i in (*shape, *ids)):
        raise ArgumentTypeError(
            "the mesh of auto_spmd_partitioning has integers as its shape and ids; got "
            f"{shape!r:.60} and {ids!r:.60}"
        )
    if sorted(ids) != [*range(num_partitions)] or math.prod(shape) != num_partitions:
        raise InvalidArgument(
            f"the mesh of auto_spmd_partitioning has the shape {shape} and the ids {ids}; it needs "
            f"each of the {num_partitions} partitions once"
        )


def require_auto_partitioning(asked: bool, declared: bool, owner: str) -> None:
    """Raises `Unimplemented` where a compiler is asked to choose, and does not declare that.

    XLA's compilers without that part end the process, or with GSPMD divide nothing
    (docs/findings.md).
    """
    # Workaround for xla-auto-partitioning
    if asked and not declared:
        raise Unimplemented(
            f"use_auto_spmd_partitioning (AUTO): {owner} does not declare that its compiler can "
            "choose how arguments are divided (capability auto_partitioning). Name their "
            "shardings, or leave them out: then they follow from those that are named"
        )


def check_assignable(num_replicas: Any, num_partitions: Any, available: int, owner: str) -> None:
    """Raises unless they are integers and ``owner`` has enough devices (``available``) for them."""
    if not (isinstance(num_replicas, INTEGER) and isinstance(num_partitions, INTEGER)):
        raise ArgumentTypeError(
            "default_device_assignment takes two integers; got "
            f"{num_replicas!r:.60} and {num_partitions!r:.60}"
        )
    if num_replicas < 1 or num_partitions < 1:
        raise InvalidArgument(
            "a device assignment has one replica and one partition at least; requested "
            f"{num_replicas} x {num_partitions}"
        )
    need = num_replicas * num_partitions
    if need > available:
        raise InvalidArgument(
            f"{num_replicas} replicas x {num_partitions} partitions need {need} devices; "
            f"{owner} has {available}"
        )


def check_execute_options(launch_id: int, kept: Sequence[object]) -> None:
    """Raises for a launch id that does not fit 32 bits, and for an invalid argument index."""
    for i in kept:
        if not isinstance(i, INTEGER):
            raise ArgumentTypeError(
                f"ExecuteOptions: non_donatable_input_indices holds {i!r:.60}, not an index"
            )
    if not _INT32.min <= launch_id <= _INT32.max:
        raise InvalidArgument(
            f"ExecuteOptions: launch_id is {launch_id}, which does not fit 32 bits"
        )


def check_parts(arrays: Any, devices: Any) -> None:
    """Raises unless both are sequences, of one length from 1."""
    if not (is_sequence(arrays) and is_sequence(devices)):
        raise ArgumentTypeError(
            "buffers_from_host takes a sequence of arrays and one of devices; got "
            f"{arrays!r:.60} and {devices!r:.60}"
        )
    if not len(devices) or len(arrays) != len(devices):
        raise InvalidArgument(f"{len(arrays)} arrays cannot be put on {len(devices)} devices")
