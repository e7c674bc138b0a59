"""Every method and smaller module with invalid arguments, as in `test_wrong_calls`.

Python itself checks the number of arguments of functions without a wrapper. All other errors are
plugrt's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrt
import plugrt.array_api as xp
import plugrt_sdk
from plugrt import monitoring, plugins, sharding, tree
from plugrt.errors import ArgumentTypeError, PlugrtError
from plugrt.execution.arrays import array_methods
from plugrt.interface import CompileOptions, DeviceAssignment, Program
from support.effort import some_of
from support.wrong_calls import parameters_of, wrong_calls

pytestmark = pytest.mark.filterwarnings("ignore")

GRID = np.ones((2, 3), np.float32)


def increment(a: Any) -> Any:
    return a + 1


LOWERED = plugrt.jit(increment).lower(GRID)
ONE, SEVERAL = plugrt.device_put(GRID), plugrt.pmap(increment)(np.ones((2, 3), np.float32))
OBJECTS: dict[str, Any] = {
    "array": ONE,
    "array in parts": SEVERAL,
    "device": plugrt.devices()[0],
    "memory": plugrt.devices()[0].default_memory(),
    "sharding": ONE.sharding,
    "pmap sharding": SEVERAL.sharding,
    "traced": plugrt.jit(increment).trace(GRID),
    "lowered": LOWERED,
    "compiled": LOWERED.compile(),
    "pmap lowered": plugrt.pmap(increment).lower(GRID),
    "program": plugrt.compile(plugrt.load_program(LOWERED.as_text())),
    "structure": tree.structure({"a": 1}),
    "shape": plugrt.ShapeDtypeStruct((2,), np.float32),
    "settings": plugrt.config,
    "monitoring": monitoring,
    "plugins": plugins,
    "sharding module": sharding,
    "tree": tree,
    "sdk": plugrt_sdk,
}
LEFT_OUT = {
    # They end or begin state that the later tests need.
    "delete", "register", "clear_cache",
    # Methods of pluggy, NumPy and typing.
    "hookimpl", "__array__", "Handle", "EventListener", "DurationListener",
    "ScalarListener", "TimeSpanListener",
    # Methods that plugrt itself calls, with objects of its own.
    "fix", "hold", "release", "lookup", "tracer_class", "rerun", "swap_surroundings",
}  # fmt: skip
_PYTHONS = (Exception, Enum)  # Python checks calls of such classes


def callables(owner: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    names = getattr(owner, "__all__", None) if isinstance(owner, ModuleType) else None
    for name in names or [n for n in dir(owner) if not n.startswith("_")]:
        if name in LEFT_OUT:
            continue
        try:
            member = getattr(owner, name)
        except PlugrtError:  # a property that this object refuses
            continue
        if callable(member) and not (inspect.isclass(member) and issubclass(member, _PYTHONS)):
            yield name, member


def leaks(name: str, function: Callable[..., Any]) -> tuple[int, list[str]]:
    """Returns the number of wrong calls, and the errors raised inside that are not plugrt's."""
    count, found = 0, []
    for title, args, kwargs in wrong_calls(name, parameters_of(function), GRID):
        count += 1
        try:
            function(*args, **kwargs)
        except PlugrtError:
            continue
        except Exception as error:  # noqa: BLE001 - whatever it is, it is judged
            step = error.__traceback__
            counted = isinstance(error, TypeError) and step is not None and step.tb_next is None
            # Without the core contextlib calls these functions, and adds frames.
            helped = " argument" in str(error) and name in ("override", "surround")
            users = "increment()" in str(error)  # Python's error for the user's own function
            if not (counted or helped or users):
                found.append(f"{name}: {title}: {type(error).__name__}: {error}")
    return count, found


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("title", some_of([*OBJECTS], 8))
def test_methods_raise_plugrt_errors(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some of them write files, and "text" is a path
    total, found = 0, []
    for name, function in callables(OBJECTS[title]):
        try:
            inspect.signature(function)
        except ValueError:  # a function of optree in C++
            continue
        count, strange = leaks(name, function)
        total += count
        found += strange
    assert found == []
    assert total or title in ("structure", "memory", "shape", "array in parts")


def test_a_method_is_named_with_its_class_and_without_the_object() -> None:
    """When ``__init__`` fails, the object lacks the attributes that its repr needs."""
    for call, says in (
        (lambda: sharding.PmapSharding(devices=None), "^PmapSharding .* devices=None: "),
        (
            lambda: ONE.sharding.shard_shape(3),
            r"^SingleDeviceSharding\.shard_shape .* argument 0=3",
        ),
    ):
        with pytest.raises(ArgumentTypeError, match=says):
            call()


def test_an_argument_without_a_repr_is_named_by_its_type() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise AttributeError("no")

    with pytest.raises(ArgumentTypeError, match=r"an object of type .*Shy"):
        tree.unflatten(Shy(), [])


def test_is_leaf_may_answer_with_anything() -> None:
    assert tree.leaves([[1], [2]], is_leaf=lambda x: x[:1] if isinstance(x, list) else 0) == [
        [[1], [2]]
    ]
    assert len(tree.map(lambda x: x, [xp.ones(2)], is_leaf=lambda x: ())) == 1


PROGRAM = Program(LOWERED.as_text().encode())


@pytest.mark.parametrize("wrong", [object, 3.5, [1], (3,)], ids=repr)
def test_compile_options_check_their_fields(wrong: Any) -> None:
    """The check comes before a backend converts them: its error would name its own types."""
    for call in (
        lambda: plugrt.compile(PROGRAM, env_overrides={"a": [wrong]}),
        lambda: plugrt.compile(PROGRAM, env_overrides={3: 1}),
        lambda: CompileOptions(num_replicas=wrong),
        lambda: CompileOptions(num_partitions=wrong),
        lambda: CompileOptions(device_assignment=wrong),
        lambda: CompileOptions(env_overrides=wrong),
        lambda: CompileOptions(encoded=wrong),
        lambda: DeviceAssignment(wrong),
    ):
        with pytest.raises(ArgumentTypeError):
            call()


def public_methods(owner: Any) -> list[tuple[str, Callable[..., Any]]]:
    """Returns the public methods of an object that have no parameters."""
    return [(n, f) for n, f in callables_of(owner) if not parameters_of(f)]


def callables_of(owner: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, _ in inspect.getmembers_static(type(owner), inspect.isfunction):
        if not name.startswith("_"):
            yield name, getattr(owner, name)


@pytest.mark.parametrize("title", ["array", "lowered", "compiled", "pmap lowered", "program"])
def test_methods_without_arguments_refuse_one_by_their_class(title: str) -> None:
    """The error names the class of the object, not the base class that defines the method."""
    owner = OBJECTS[title]
    methods = public_methods(owner)
    assert methods
    for name, method in methods:
        with pytest.raises(ArgumentTypeError) as caught:
            method(3)
        text = str(caught.value)
        if name in array_methods.DECLARED:  # there, the array is one of the arguments
            assert " cannot be called with argument 0=Array" in text, text
        else:
            named = f"{type(owner).__name__}.{name}"
            assert text.startswith(f"{named} cannot be called with argument 0=3: {named}()"), text


def test_wrong_values_of_options_are_refused() -> None:
    for call in (
        lambda: monitoring.register_event_listener(3),
        lambda: monitoring.register_event_duration_secs_listener(None),
        lambda: setattr(plugrt.config, "enable_x46", True),
        lambda: plugrt.device_put(ONE, donate="x"),
        lambda: plugrt.device_put(ONE, may_alias="q"),
        lambda: xp.asarray(ONE, copy="no"),
        lambda: plugrt.jit(increment, keep_unused="q"),
        lambda: plugrt.random.wrap_key_data("q"),
        lambda: ONE.sharding.shard_shape("a"),
        lambda: plugrt.ShapeDtypeStruct((2,), None),
        lambda: ONE.at[0].apply(3),
        lambda: plugrt.lax.iota("float32", -1),
    ):
        with pytest.raises(PlugrtError) as caught:
            call()
        assert "update_at" not in str(caught.value)
    with pytest.raises(PlugrtError, match="did you mean 'enable_x64'"):
        plugrt.config.enable_x46 = True  # type: ignore[attr-defined]


@pytest.mark.parametrize("flag", [True, 1, np.True_, False, 0, np.False_], ids=repr)
def test_a_flag_is_a_truth_value_of_python_or_numpy(flag: Any) -> None:
    assert xp.asarray(GRID, copy=flag or None).shape == (2, 3)
    assert plugrt.jit(increment, keep_unused=flag)(GRID).shape == (2, 3)
