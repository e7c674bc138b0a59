"""Branches, loops, calls and tokens, for one device and for several in step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from plugrt_numpy.data_types import Function
from plugrt_numpy.devices import Active
from plugrt_numpy.operation import Lowering, Operation


def unpack_single(op: Operation, function: Function) -> Function:
    """Returns a function that returns the one result of an operation itself, several as a tuple."""
    if len(op.ir.results) != 1:
        return function
    return lambda *arguments: function(*arguments)[0]


def _while(op: Operation) -> Function:
    condition, body = op.body(0).call, op.body(1).call
    count = len(op.ir.operands)
    pick = _select_captured(op, count)

    def loop(*values: Any) -> tuple[Any, ...]:
        state = values[:count]
        of_condition, of_body = pick(values, 0), pick(values, 1)
        while condition(*state, *of_condition)[0]:
            state = body(*state, *of_body)
        return state

    return unpack_single(op, loop)


def _select_captured(op: Operation, count: int) -> Callable[[Sequence[Any], int], Sequence[Any]]:
    """Returns a function that selects a region's own captured values.

    An operation's arguments are its ``count`` operands, then the captured values of all of its
    regions, each once.
    """
    places = op.captured_places()
    return lambda values, region: [values[count + i] for i in places[region]]


def _case(op: Operation) -> Function:
    branches = [op.body(i).call for i in range(len(op.ir.regions))]
    pick, last = _select_captured(op, 1), len(branches) - 1

    def choose(index: Any, *captured: Any) -> tuple[Any, ...]:
        number = int(index)
        number = number if 0 <= number <= last else last
        results: tuple[Any, ...] = branches[number](*pick((index, *captured), number))
        return results

    return unpack_single(op, choose)


def _if(op: Operation) -> Function:
    yes, no = op.body(0).call, op.body(1).call
    pick = _select_captured(op, 1)

    def choose(*values: Any) -> tuple[Any, ...]:
        results: tuple[Any, ...] = yes(*pick(values, 0)) if values[0] else no(*pick(values, 1))
        return results

    return unpack_single(op, choose)


def _call(op: Operation) -> Function:
    return unpack_single(op, op.module.function(op.string("callee")))


def _composite(op: Operation) -> Function:
    return unpack_single(op, op.module.function(op.string("decomposition")))


def _pass_on(op: Operation) -> Function:
    return unpack_single(op, lambda *values: values)


def _token(op: Operation) -> Function:
    return lambda *tokens: None


def _tuple(op: Operation) -> Function:
    return lambda *values: values


def _get_tuple_element(op: Operation) -> Function:
    index = op.integer("index")
    return lambda values: values[index]


OPERATIONS: dict[str, Lowering] = {
    "func.call": _call,
    "stablehlo.after_all": _token,
    "stablehlo.case": _case,
    "stablehlo.composite": _composite,
    "stablehlo.create_token": _token,
    "stablehlo.get_tuple_element": _get_tuple_element,
    "stablehlo.if": _if,
    "stablehlo.optimization_barrier": _pass_on,
    "stablehlo.tuple": _tuple,
    "stablehlo.while": _while,
}
"""Operation name to lowering."""

Lists = Sequence[Sequence[Any]]
"""For each value the list of the devices' own."""


def _pick(devices: Sequence[int], lists: Lists) -> list[list[Any]]:
    """Returns the items of the lists at some positions."""
    return [[values[i] for i in devices] for values in lists]


def _joint_while(op: Operation) -> Function:
    condition = op.module.joint_body(op.ir.regions[0])
    body = op.module.joint_body(op.ir.regions[1])
    count = len(op.ir.operands)
    pick = _select_captured(op, count)

    def loop(active: Active, *lists: Any) -> list[list[Any]]:
        state = [list(values) for values in lists[:count]]
        inside = list(range(len(active)))
        while inside:
            devices = tuple(active[i] for i in inside)
            captured = _pick(inside, pick(lists, 0))
            verdicts = condition(devices, *_pick(inside, state), *captured)[0]
            inside = [i for i, verdict in zip(inside, verdicts, strict=True) if verdict]
            if not inside:
                break
            devices = tuple(active[i] for i in inside)
            news = body(devices, *_pick(inside, state), *_pick(inside, pick(lists, 1)))
            for values, new in zip(state, news, strict=True):
                for i, value in zip(inside, new, strict=True):
                    values[i] = value
        return state

    return unpack_single(op, loop)


def _joint_case(op: Operation) -> Function:
    branches = [op.module.joint_body(region) for region in op.ir.regions]
    pick, last = _select_captured(op, 1), len(branches) - 1
    predicate, count = op.name == "stablehlo.if", len(op.ir.results)

    def number(index: Any) -> int:
        if predicate:
            return 0 if index else 1
        return int(index) if 0 <= int(index) <= last else last

    def choose(active: Active, *lists: Any) -> list[list[Any]]:
        chosen = defaultdict(list)
        for i, index in enumerate(lists[0]):
            chosen[number(index)].append(i)
        results: list[list[Any]] = [[None] * len(active) for _ in range(count)]
        for branch, inside in sorted(chosen.items()):
            devices = tuple(active[i] for i in inside)
            news = branches[branch](devices, *_pick(inside, pick(lists, branch)))
            for values, new in zip(results, news, strict=True):
                for i, value in zip(inside, new, strict=True):
                    values[i] = value
        return results

    return unpack_single(op, choose)


def _joint_call(op: Operation) -> Function:
    name = op.string("callee" if op.name == "func.call" else "decomposition")
    return unpack_single(op, op.module.joint_function(name))


JOINT_CONTROL: dict[str, Lowering] = {
    "func.call": _joint_call,
    "stablehlo.case": _joint_case,
    "stablehlo.composite": _joint_call,
    "stablehlo.if": _joint_case,
    "stablehlo.while": _joint_while,
}
"""The joint forms: devices that leave a loop or run another branch skip the others' operations."""
