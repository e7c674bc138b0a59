"""Pytrees: containers, leaves, and the names of leaves."""

from __future__ import annotations

import dataclasses
import inspect
from collections import OrderedDict, namedtuple
from typing import Any

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plugrt
from plugrt import tree as pytrees
from plugrt.errors import StructureError
from plugrt.execution.trees.tree_prefixes import spread_prefix
from support.distributions import run_python

Point = namedtuple("Point", "x y")

trees = st.recursive(
    st.integers() | st.none() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=12,
)


@given(trees)
@settings(deadline=None, max_examples=60)
def test_flattening_can_be_undone(value: Any) -> None:
    leaves, spec = pytrees.flatten(value)
    assert None not in leaves
    assert pytrees.unflatten(spec, leaves) == value
    assert [leaf for _, leaf in pytrees.flatten_with_paths(value)] == leaves
    again = pytrees.flatten(pytrees.unflatten(spec, leaves))[1]
    assert (again, hash(again)) == (spec, hash(spec))


def test_paths_read_like_code() -> None:
    value = {"w": [1, (2,)], "p": Point(3, None)}
    paths = dict(pytrees.flatten_with_paths(value))
    assert paths == {"['p'].x": 3, "['w'][0]": 1, "['w'][1][0]": 2}
    assert pytrees.flatten_with_paths(5) == [("", 5)]


def test_structures_are_told_apart() -> None:
    values = [1, (1,), [1], {"a": 1}, {"b": 1}, OrderedDict(a=1), Point(1, None), None, ()]
    specs = [pytrees.flatten(v)[1] for v in values]
    assert len(set(specs)) == len(specs)
    assert [pytrees.is_leaf_spec(s) for s in specs] == [True] + [False] * 8


def test_a_prefix_is_spread_over_what_it_begins() -> None:
    full = {"a": [1, (2, None)], "b": 3}
    assert pytrees.broadcast_prefix({"a": None, "b": "x"}, full) == [None, None, "x"]
    assert pytrees.broadcast_prefix((0, 1), full, lambda x: x == (0, 1)) == [(0, 1)] * 3
    assert pytrees.broadcast_prefix({"a": [7, (8, None)], "b": 9}, full) == [7, 8, 9]
    wanted = r"axes=\{'a': \(1, 2\).* is not a pytree prefix of the arguments, .*'b': \*"
    with pytest.raises(StructureError, match=wanted):
        spread_prefix({"a": (1, 2), "b": 0}, full, "axes", "the arguments")


def test_the_order_of_a_dict_does_not_matter() -> None:
    one, two = pytrees.flatten({"a": 1, "b": 2}), pytrees.flatten({"b": 2, "a": 1})
    assert one == two


def test_map() -> None:
    assert pytrees.map(lambda a, b: a + b, {"x": [1, None]}, {"x": [10, None]}) == {"x": [11, None]}


def test_dataclasses() -> None:
    @pytrees.register_dataclass
    @dataclasses.dataclass(frozen=True)
    class Plain:
        a: Any
        b: Any

    leaves, spec = pytrees.flatten([Plain(1, [2, 3])])
    assert leaves == [1, 2, 3]
    assert pytrees.unflatten(spec, "xyz") == [Plain("x", ["y", "z"])]

    @dataclasses.dataclass
    class Meta:
        value: Any
        name: str

        def __post_init__(self) -> None:
            assert isinstance(self.value, int)

    pytrees.register_dataclass(Meta, ["value"], ["name"])
    leaves, spec = pytrees.flatten(Meta(1, "n"))
    assert leaves == [1]
    assert spec != pytrees.flatten(Meta(1, "m"))[1]
    made = pytrees.unflatten(spec, [object()])  # __init__ is not called
    assert made.name == "n"

    class Other:  # no dataclass
        def __init__(self, value: Any) -> None:
            self.value, self.name = value, "m"

    pytrees.register_dataclass(Other, ["value"], ["name"])
    leaves, spec = pytrees.flatten(Other([4, 5]))
    assert leaves == [4, 5]
    assert pytrees.unflatten(spec, [6, 7]).value == [6, 7]


def test_dataclasses_that_do_not_fit() -> None:
    with pytest.raises(TypeError, match="takes a dataclass"):
        pytrees.register_dataclass(int)
    with pytest.raises(TypeError, match="takes a dataclass"):
        pytrees.register_dataclass(3, ["value"], [])  # type: ignore[type-var]

    @dataclasses.dataclass
    class Fields:
        a: Any
        b: Any

    with pytest.raises(ValueError, match=r"fields \['a', 'b'\].*each of them once"):
        pytrees.register_dataclass(Fields, ["a"], [])


def test_names_parameters_and_results_match_jax() -> None:
    data = {"b": [1, (2, None)], "a": (), "c": {"x": 3}}

    def is_leaf(x: Any) -> bool:
        return isinstance(x, tuple)

    for name in ("all", "flatten", "leaves", "map", "reduce", "structure", "unflatten"):
        ours, theirs = getattr(pytrees, name), getattr(jax.tree, name)
        assert list(inspect.signature(ours).parameters) == list(
            inspect.signature(theirs).parameters
        )
    for leaf in (None, is_leaf):
        assert pytrees.leaves(data, leaf) == jax.tree.leaves(data, leaf)
        both = [t.map(lambda x: [x], data, is_leaf=leaf) for t in (pytrees, jax.tree)]
        assert both[0] == both[1]
        assert pytrees.structure(data, leaf) == pytrees.flatten(data, leaf)[1]
        assert pytrees.unflatten(pytrees.structure(data, leaf), pytrees.leaves(data, leaf)) == data
    assert pytrees.reduce(lambda a, b: a - b, data) == 1 - 2 - 3
    assert pytrees.reduce(lambda a, b: a - b, data, 10) == 4
    assert pytrees.reduce(lambda a, b: a - b, (), 10) == 10
    for flags in ([True, {"x": 1}], [True, {"x": 0}], []):
        assert pytrees.all(flags) is jax.tree.all(flags)


def test_listing_the_namespace_gives_its_public_names() -> None:
    assert {n for n in dir(plugrt.tree) if n[:2] != "__"} == set(pytrees.__all__)
    assert all(callable(getattr(plugrt.tree, n)) for n in pytrees.__all__)


def test_containers_are_refused_once_the_interpreter_has_ended_optree() -> None:
    """optree then treats containers as leaves: earlier, errors stated that a tuple is no array."""
    done = run_python(
        """
        import atexit
        atexit.register(lambda: use())  # runs after what is registered later
        import numpy as np
        import plugrt
        from plugrt import tree as pytrees
        atexit.register(lambda: print(pytrees.leaves((1, 2))))
        _, pair = pytrees.flatten((1, 2))
        x = np.float32(2)

        def use():
            print(pytrees.map(lambda leaf: leaf + 1, x), pytrees.unflatten(pair, [3, 4]))
            calls = pytrees.flatten, pytrees.leaves, pytrees.structure, pytrees.flatten_with_paths
            for call in (*calls, lambda value: pytrees.map(abs, value)):
                for value in ((1, 2), {"a": x}, None):
                    try:
                        print(call(value))
                    except plugrt.errors.FailedPrecondition as error:
                        print(str(error)[:46], end=";")
        """
    )
    told = 15 * "FAILED_PRECONDITION: the interpreter is ending;"
    assert (done.returncode, done.stdout) == (0, f"[1, 2]\n3.0 (3, 4)\n{told}"), done.stderr
