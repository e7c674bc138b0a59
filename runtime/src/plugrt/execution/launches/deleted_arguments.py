"""Why a launch failed, where it is for its arguments: deleted ones, and arrays that are donated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from plugrt.callbacks.callback_exits import raise_exit
from plugrt.errors import DeletedBuffer, InvalidArgument
from plugrt.execution.arrays.array import Array
from plugrt.execution.placement.plan import Plan


def raise_explained(
    error: Exception,
    values: Sequence[Any],
    given: Sequence[Any],
    plan: Plan,
    constants: Sequence[Array],
) -> NoReturn:
    """Raises what explains the error of a launch of ``values``; else the error itself.

    ``given`` is what the launch took of those that it needs, as far as that was found.
    `DeletedBuffer` names a deleted argument or constant, `InvalidArgument` an array that is donated
    and also needed otherwise. What a Python function of the program raised to end the process is
    raised as it was (`raise_exit`).
    """
    raise_exit(error)
    _refuse_deleted(error, values, plan, constants)
    _refuse_given_back(error, values, given, plan)
    for i in plan.donated:
        if any(values[i] is constant for constant in constants):
            raise InvalidArgument(
                f"{plan.describe(i)} of {plan.name!r} is donated, and the function closes over "
                "the same array, which it then has no more; pass a copy, or use the argument"
            ) from error
        for j in plan.kept:
            if i != j and _same_array(values[i], values[j]):
                also = "is also donated" if j in plan.donated else "is not"
                raise InvalidArgument(
                    f"{plan.describe(i)} of {plan.name!r} is donated, and the same array is "
                    f"{plan.describe(j)}, which {also}; pass a copy of one"
                ) from error
    raise error


def _refuse_deleted(
    error: Exception, values: Sequence[Any], plan: Plan, constants: Sequence[Array]
) -> None:
    # A program that failed while it ran, in a function that it calls say, took what is donated.
    refused = isinstance(error, DeletedBuffer)
    for i in plan.needed:
        if i >= len(values) or type(values[i]) is not Array:
            continue
        before = values[i]._shards is None
        if before or (values[i].is_deleted() and (refused or i not in plan.donated)):
            what = f"{plan.describe(i)} of {plan.name!r}"
            raise DeletedBuffer(f"{what}: {values[i]._deleted_message()}") from error
    for constant in constants:
        if constant.is_deleted():
            raise DeletedBuffer(
                f"an array in the closure of {plan.name!r}: {constant._deleted_message()}"
            ) from error


def _refuse_given_back(
    error: Exception, values: Sequence[Any], given: Sequence[Any], plan: Plan
) -> None:
    """Refuses an array that had nothing when the launch took it, and has it again.

    Another thread donated it to a launch that failed. What backends say of None in its place may be
    anything.
    """
    for i, held in zip(plan.needed, given, strict=False):
        if held is None:
            raise DeletedBuffer(
                f"{plan.describe(i)} of {plan.name!r}: {values[i]._given_back_message()}"
            ) from error


def _same_array(a: Any, b: Any) -> bool:
    return type(a) is Array and type(b) is Array and a._shards is b._shards
