"""Calls with objects of registered classes, which the core reads without optree."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp


@dataclass
class Step:
    """An object with two parts; `scale` is metadata."""

    state: Any
    scale: Any
    rate: Any = 1.0


plugrt.tree.register_dataclass(Step, ["rate", "state"], ["scale"])


@dataclass
class Opened:
    """An object with its own flatten function, whose calls are counted."""

    open: Callable[[], Any]
    calls: list[int] = field(default_factory=list)


def _open(value: Opened) -> Any:
    value.calls.append(1)
    return value.open()


plugrt.tree.register_node(Opened, _open, lambda metadata, parts: ([*parts],))

X, Y = (np.full(2, i, np.float32) for i in (1, 2))


def test_containers_of_the_standard_library_are_opened() -> None:
    x, y = plugrt.device_put(X), plugrt.device_put(Y)
    traced: list[Any] = []

    @plugrt.jit
    def f(given: Any, **more: Any) -> Any:
        traced.append(given)
        leaves = plugrt.tree.leaves([given, more])
        return [leaf * (i + 1) for i, leaf in enumerate(leaves)]

    class Kept(OrderedDict[str, Any]):
        """A subclass of a container, which is a leaf, and so an invalid argument."""

    calls: list[Any] = [
        OrderedDict(b=x, a=y), OrderedDict(a=y, b=x), OrderedDict(a=x, b=y), {"b": x, "a": y},
        defaultdict(list, b=x, a=y), defaultdict(list, a=y, b=x), defaultdict(dict, a=y, b=x),
        defaultdict(None), OrderedDict(), deque(), deque(maxlen=3), deque([x, y]),
        deque([x, y], maxlen=2), deque([x, y], maxlen=3), deque([y]),
        OrderedDict(a=deque([defaultdict(int, {2: x, 1: [y, None]})]), b=(y,)),
    ]  # fmt: skip
    wanted = [repr(f(given, n=y)) for given in calls]
    assert wanted[:3] == [
        repr([x, y * 2, y * 3]), repr([y, x * 2, y * 3]), repr([x, y * 2, y * 3])
    ]  # fmt: skip
    assert wanted[4:6] == [repr([y, x * 2, y * 3])] * 2
    count = len(traced)
    # Two of the calls have an earlier one's form, with other values or another order.
    assert count == len(calls) - 2
    for _ in range(3):
        assert [repr(f(given, n=y)) for given in calls] == wanted
    assert len(traced) == count
    for _ in range(3):
        with pytest.raises(plugrt.errors.NotAnArray, match="Kept"):
            f(Kept(a=x))


def test_metadata_are_compared_as_python_compares_them() -> None:
    class Same:
        def __init__(self, number: int) -> None:
            self.number = number

        def __hash__(self) -> int:
            return 7

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Same) and other.number == self.number

    f = plugrt.jit(lambda step: step.state + getattr(step.scale, "number", step.scale))
    for number in (1, 2, 1, 2):
        assert f(Step(X, Same(number))).tolist() == [1 + number] * 2
    assert f._cache_size() == 2
    for scale in (3, 3.0, 4, True, 3):
        assert f(Step(X, scale)).tolist() == [1 + scale] * 2
    assert f._cache_size() == 5  # 3 and 3.0 are equal metadata


def test_metadata_without_a_hash_are_compared_as_well() -> None:
    f = plugrt.jit(lambda step: step.state * step.scale[0])
    compiled = f.lower(Step(X, (1,))).compile()
    for _ in range(3):
        assert f(Step(X, [2])).tolist() == [2, 2]
        assert f(Step(X, [3])).tolist() == [3, 3]
        with pytest.raises(plugrt.errors.ArgumentMismatch, match="structure"):
            compiled(Step(X, [1]))
        assert compiled(Step(X, (1,))).tolist() == [1, 1]


@pytest.mark.parametrize("error", [LookupError("mine"), TypeError("mine"), KeyboardInterrupt()])
def test_errors_of_a_node_are_raised_unchanged(error: BaseException) -> None:
    fails = False

    def open_it() -> Any:
        if fails:
            raise error
        return (X,), None

    f, node = plugrt.jit(lambda pair: pair[0][0]), Opened(open_it)
    for _ in range(2):
        fails = False
        for _ in range(3):
            assert f(node).tolist() == [1, 1]
        fails = True
        node.calls.clear()
        for given in (node, {"a": [node]}):
            with pytest.raises(type(error)) as raised:
                f(given)
            assert raised.value is error
            assert raised.traceback[-1].name == "open_it"
        assert len(node.calls) == 2
    without = object.__new__(Step)
    with pytest.raises(AttributeError, match="state"):
        f(without)


@pytest.mark.parametrize(
    "opened",
    [lambda: (iter([X]), 1), lambda: ((X,), 1, ("a",)), lambda: ({"k": X}.values(), 1)],
)  # fmt: skip
def test_nodes_with_unusual_children_are_flattened(opened: Callable[[], Any]) -> None:
    f = plugrt.jit(lambda pair: pair[0][0] + 1)
    for _ in range(3):
        assert f(Opened(opened)).tolist() == [2, 2]


@pytest.mark.parametrize("opened", [lambda: 3, lambda: (3, 4), lambda: ()])
def test_nodes_with_wrong_children_are_refused(opened: Callable[[], Any]) -> None:
    f = plugrt.jit(lambda pair: pair[0][0])
    f(Opened(lambda: ((X,), 1)))
    texts = set()
    for _ in range(3):
        with pytest.raises((TypeError, RuntimeError, ValueError)) as raised:
            f(Opened(opened))
        texts.add(str(raised.value))
    assert len(texts) == 1


def test_a_node_that_changes_what_it_is_in_while_it_is_opened() -> None:
    given: dict[str, Any] = {}

    def open_it() -> Any:
        given["k"] = given["z"] = None
        given.pop("l", None)
        return (X,), None

    f = plugrt.jit(lambda **more: more["k"][0][0] + more["l"])
    for _ in range(4):
        given.clear()
        given.update(k=Opened(open_it), l=Y)
        call = f.__call__
        assert call(**given).tolist() == [3, 3]


@pytest.mark.parametrize("container", [dict, OrderedDict, list, deque])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_node_that_empties_what_it_is_in(container: Any, is_known: bool) -> None:
    """A call uses the parts that its containers had when the call read them."""
    f = plugrt.jit(lambda parts: sum(plugrt.tree.leaves(parts), xp.zeros(2)))

    def call(empties: bool) -> Any:
        def open_it() -> Any:
            if empties:
                given.clear()
            return (X,), None

        parts = {"a": Opened(open_it), "b": Y, "c": X}
        given = container(parts if issubclass(container, dict) else parts.values())
        return f(given).tolist()

    for _ in range(3 if is_known else 0):
        assert call(False) == [4, 4]
    assert call(True) in ([4, 4], [4, 4] if is_known else [0, 0])  # after the core read it
    for _ in range(3):
        assert call(False) == [4, 4]
        assert call(True) == [4, 4]
