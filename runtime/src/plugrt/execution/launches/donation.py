"""`Donation`: the arrays whose memory a program's launches consume, and errors about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import prod
from sys import getrefcount
from typing import Any, NoReturn

import numpy as np

from plugrt.errors import DeletedBuffer, InvalidArgument
from plugrt.execution.arrays import sharers
from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.arrays.array import Array, array_holding, duplicate
from plugrt.execution.arrays.array_deletion import Deletion
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.arrays.sharers import ends_with, find_sharers
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.plan import Plan
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.frames.traceback_filter import warn_user
from plugrt.interface import TensorType
from plugrt.lifetime.callback_exits import raise_exit
from plugrt.native.native_core import core

_TAKEN = (
    3  # the result of `getrefcount`, which counts its own reference, for an object with two others
)

Taken = list[tuple[Array, object, object, Deletion]]
"""For each array its former buffers and host copy, and the `Deletion` that replaced them."""


class Donation:
    """The arguments that a call donates, by the plan of its program.

    With ``alone`` the launch receives copies of buffers that have other users. A launch that uses
    an argument and one that donates it may wait for each other for ever (jaxlib 0.10, under JAX as
    well): the first has begun one use and needs a second; the other waits for the end of that use
    and blocks new ones. Every user of an array's buffers holds a reference to them, and no new user
    can appear once they are removed from the array, so the reference count decides.
    """

    __slots__ = ("_alone", "_arguments", "_taker")

    def __init__(self, plan: Plan, *, alone: bool = False) -> None:
        self._alone = alone
        self._taker = plan.name
        self._arguments = [(i, plan.kept.index(i) if i in plan.kept else -1) for i in plan.donated]

    def take(self, values: Sequence[object], shards: list[object], taken: Taken) -> None:
        """Removes the buffers from donated arrays; ``shards`` are the coming launch's arguments.

        Called before the launch: until then another thread may share the buffers with a new array,
        afterwards it finds them donated. Buffers that other arrays share are copied for the launch.
        If there is no launch, the caller restores the entries in ``taken``.

        Raises:
            DeletedBuffer: an array is deleted.
            InvalidArgument: an array is also another argument of the launch.
        """
        # Workaround for xla-launch-holds
        self._separate(values, shards)
        loss = Deletion(self._taker)
        for i, position in self._arguments:
            array = values[i]
            if type(array) is not Array:
                continue  # a host value, whose buffers belong to the launch alone
            own = None if position < 0 else shards[position]
            if array._shards is None:
                if any(array is other and own is not had for other, had, *_ in taken):
                    continue  # passed twice, and moved or copied for this argument
                if array._extra is loss:
                    raise self._make_passed_twice_error(i)
            before = len(taken)
            keeper = _take_from(array, own, loss, taken)
            tied: Taken = []
            same = len(taken) - before - 1
            if same and own is taken[-1][1]:
                tied = [entry for entry in taken[before:-1] if entry[1] is not own]
                same -= len(tied)
                self._refuse_tied(i, shards, tied)
            counts = self._alone and own is taken[-1][1] and keeper is None
            del own  # a reference
            if counts and (
                _is_used(shards, position, taken[-1][2], same) or (tied and _are_used(tied))
            ):
                keeper = array_holding(shards[position], array._aval)
            if keeper is not None:
                shards[position] = duplicate(keeper)._held()
            del keeper  # the next array that this call donates does not need it

    def _separate(self, values: Sequence[Any], shards: list[object]) -> None:
        """Copies a donated array for the launch if another argument has the same memory.

        Arrays share memory if they were two results of one call that returned the same argument
        twice. Raises `InvalidArgument` for an array that is passed twice, as backends do, but
        before other threads see it as donated.
        """
        ids = [*map(id, shards)]
        if len({*ids}) == len(ids):
            return
        for i, position in self._arguments:
            if position < 0 or type(values[i]) is not Array:
                continue
            own = shards[position]
            if own is values[i]._shards and ids.count(id(own)) > 1:
                if sum(value is values[i] for value in values) > 1:
                    raise self._make_passed_twice_error(i)
                shards[position] = duplicate(values[i])._held()
                ids[position] = id(shards[position])

    def _refuse_tied(self, i: int, shards: list[object], tied: Taken) -> None:
        """Raises `InvalidArgument` if another argument is tied to a donated one."""
        given = {*map(id, shards)}
        if any(id(had) in given for _, had, *_ in tied):
            raise InvalidArgument(
                f"argument {i} of {self._taker!r} is donated, and another argument has its memory "
                "(one is a part of the other)"
            )

    def _make_passed_twice_error(self, i: int) -> InvalidArgument:
        return InvalidArgument(f"argument {i} of {self._taker!r} is donated and passed twice")


def _take_from(array: Array, own: Any, loss: Deletion, taken: Taken) -> Array | None:
    """Moves the buffers of an array, and before these of arrays tied to it, to ``taken``.

    If the buffers are ``own`` and another array shares them, returns a new array over them: it
    shows other threads that the buffers are still needed.
    """
    with sharers.lock:
        held = array._shards
        if held is None:
            raise DeletedBuffer(array._deleted_message())
        tied, shared = find_sharers(array)
        keeper = share_buffers(array, array._aval) if shared and own is held else None
        for lost in tied:
            taken.append((lost, lost._shards, lost._extra, loss))
            lost._mark_lost(loss)
        taken.append((array, held, array._extra, loss))
        array._mark_lost(loss)
    return keeper


def _is_used(shards: list[object], position: int, extra: Any, same: int = 0) -> bool:
    """Whether anything but the list and ``taken`` refers to one of these shards.

    Excludes the host copy ``extra``, which views the same memory, and ``same`` other arrays from
    which the shards were removed as well.
    """
    view = extra
    while type(view) is np.ndarray:
        view = view.base
    viewed = getattr(view, "obj", None) is shards[position]
    alone = _TAKEN + viewed + same
    if core is not None and getrefcount(shards[position]) > alone:
        core.forget_result(shards[position])
    return getrefcount(shards[position]) > alone


def _are_used(tied: Taken) -> bool:
    """Whether anything refers to buffers of arrays that share a part with a donated one.

    Excludes the list itself and a host copy. Two of these arrays may have the same object, such as
    an array of one part and that part: they count as used, and are copied.
    """
    return any(_is_used([entry[1] for entry in tied], k, tied[k][2]) for k in range(len(tied)))


def give_back(taken: Taken) -> None:
    """Restores the buffers of donated arrays, unless they were deleted meanwhile."""
    with sharers.lock:
        for array, held, extra, loss in reversed(taken):
            if array._extra is loss:
                array._extra, array._shards = extra, held


def raise_explained(
    error: Exception,
    values: Sequence[object],
    given: Sequence[object],
    plan: Plan,
    constants: Sequence[Array],
) -> NoReturn:
    """Raises an error that names the argument which made a launch fail, or else the launch's error.

    ``values`` are the arguments, ``given`` the shards that the launch received. `DeletedBuffer`
    names a deleted argument or constant, `InvalidArgument` an array that is donated and also needed
    otherwise. An exception with which a Python function of the program ends the process is raised
    unchanged (`raise_exit`).
    """
    raise_exit(error)
    _refuse_deleted(error, values, plan, constants)
    _refuse_given_back(error, values, given, plan)
    for i in plan.donated:
        if any(ends_with(values[i], constant) for constant in constants):
            raise InvalidArgument(
                f"{plan.describe(i)} of {plan.name!r} is donated, and the function closes over "
                "the same array, which it then has no more; pass a copy, or use the argument"
            ) from error
        for j in plan.kept:
            if i != j and _is_same_array(values[i], values[j]):
                also = "is also donated" if j in plan.donated else "is not"
                raise InvalidArgument(
                    f"{plan.describe(i)} of {plan.name!r} is donated, and the same array is "
                    f"{plan.describe(j)}, which {also}; pass a copy of one"
                ) from error
    raise error


def _refuse_deleted(
    error: Exception, values: Sequence[Any], plan: Plan, constants: Sequence[Array]
) -> None:
    # A program that failed while it ran, for example in a function that it calls, consumed the
    # donated arguments.
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
    error: Exception, values: Sequence[Any], given: Sequence[object], plan: Plan
) -> None:
    """Raises for an array that had no buffers when the launch began, and has them again.

    Another thread had donated it to a launch that failed. Backends have no defined error for None
    in place of buffers.
    """
    for i, held in zip(plan.needed, given, strict=False):
        if held is None:
            raise DeletedBuffer(
                f"{plan.describe(i)} of {plan.name!r}: {values[i]._given_back_message()}"
            ) from error


def _is_same_array(a: Any, b: Any) -> bool:
    return type(a) is Array and type(b) is Array and a._shards is b._shards


_Size = tuple[int, str | None]
"""The bytes of an array's part on one device, and the kind of its memory."""


def pair_parts(
    plan: Plan,
    launch: Launch,
    types: Sequence[ParameterType],
    outputs: Sequence[TensorType],
    aliased: Collection[int],
) -> Plan:
    """Returns the plan with only those arguments donated that pair with a result.

    The others stay with the caller, as in JAX. Apart from arguments that the program itself has
    ``aliased``, XLA pairs donated parameters and results whose parts have equal sizes in bytes, in
    order. The shardings must be settled.
    """
    free: defaultdict[_Size, int] = defaultdict(int)
    for output, sharding in zip(outputs, launch.out_shardings, strict=True):
        free[_part(output, sharding)] += 1
    used: list[int] = []
    left: list[int] = []
    given = sorted((*plan.donated, *plan.unpaired), key=lambda i: (i not in aliased, i))
    for i in given:
        size = _part(TensorType(*types[i][:2]), launch.in_shardings[i])
        usable = i in plan.kept and free[size] > 0
        free[size] -= usable
        (used if usable else left).append(i)
    return replace(plan, donated=tuple(used), unpaired=tuple(left))


def warn_of_donations(plan: Plan, types: Sequence[ParameterType]) -> None:
    """Warns of donated arguments that no result pairs with, as JAX does."""
    unused = [str(TensorType(*types[i][:2])) for i in plan.unpaired]
    if not unused:
        return
    warn_user(
        f"Some donated buffers were not usable: {', '.join(unused)} (no result of "
        f"{plan.name!r} has parts of that size on its devices); they stay with the caller"
    )


def _part(kind: TensorType, sharding: Sharding) -> _Size:
    return prod(sharding.shard_shape(kind.shape)) * kind.dtype.itemsize, sharding.memory_kind
