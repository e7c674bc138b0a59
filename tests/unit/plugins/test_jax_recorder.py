"""The recorder of registrations of plugins made for JAX, by any function; jax is unchanged."""

from __future__ import annotations

import gc
import importlib
import inspect
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugrt.errors import PluginIncompatible
from plugrt.plugins.starting import jax_recorder
from plugrt.plugins.starting.jax_recorder import (
    RECORDED,
    Recorder,
    import_fresh,
    record_registrations,
)

pytest.importorskip("jax")


_LISTS = ("_plugin_callbacks", "_backend_initialization_hooks")


@pytest.fixture
def bridge() -> Iterator[Any]:
    """jax's module, which must have the same functions and registrations afterwards."""
    found: Any = importlib.import_module("jax._src.xla_bridge")
    functions = [name for name in RECORDED if hasattr(found, name)]
    assert {"register_plugin", "register_backend_factory"} <= set(functions)
    before = {name: getattr(found, name).__code__ for name in functions}
    factories = dict(found._backend_factories)
    lists = {n: list(getattr(found, n)) for n in _LISTS if hasattr(found, n)}
    yield found
    assert {name: getattr(found, name).__code__ for name in functions} == before
    assert found._backend_factories == factories
    assert {name: getattr(found, name) for name in lists} == lists


def test_every_reference_to_the_function_is_heard(bridge: Any) -> None:
    held = bridge.register_plugin
    with record_registrations() as recorder:
        held("a", library_path="/a.so")
        bridge.register_plugin("b", c_api="capsule")
        bridge.register_backend_factory("c", print, priority=3)
        bridge.register_plugin_callbacks(print)
        if hasattr(bridge, "register_backend_initialization_hook"):  # JAX 0.12 has none
            bridge.register_backend_initialization_hook(print)
    assert [(r.name, r.priority) for r in recorder.registrations] == [
        ("a", 400), ("b", 400), ("c", 3)
    ]  # fmt: skip
    assert recorder.registrations[2].factory is print


def test_the_arguments_are_those_of_every_jax(bridge: Any) -> None:
    ours = inspect.signature(Recorder.register_plugin).parameters
    theirs = inspect.signature(bridge.register_plugin).parameters
    assert set(theirs) <= set(ours)
    with record_registrations() as recorder:
        bridge.register_plugin("early", 600, "/l.so", {"a": 1})
        bridge.register_plugin("late", library_path="/l.so", colour="red", size=1)
    early, late = recorder.registrations
    assert (early.priority, early.library_path, early.options) == (600, "/l.so", {"a": 1})
    assert late.unknown == ("colour", "size")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_jax_is_as_before_whatever_a_plugin_raises(bridge: Any, error: type[BaseException]) -> None:
    with pytest.raises(error), record_registrations():
        raise error


def test_a_recording_within_a_recording(bridge: Any) -> None:
    with record_registrations() as outer:
        bridge.register_plugin("a", c_api="capsule")
        with record_registrations() as inner:
            bridge.register_plugin("b", c_api="capsule")
        bridge.register_plugin("c", c_api="capsule")
    assert [r.name for r in outer.registrations] == ["a", "c"]
    assert [r.name for r in inner.registrations] == ["b"]


def test_other_threads_reach_jax(bridge: Any) -> None:
    with record_registrations() as recorder:
        thread = threading.Thread(
            target=bridge.register_backend_factory, args=("threaded", print), kwargs={"priority": 7}
        )
        thread.start()
        thread.join()
    assert recorder.registrations == []
    assert bridge._backend_factories.pop("threaded").priority == 7


def test_jax_s_own_calls_reach_jax(bridge: Any) -> None:
    """A plugin's import may import modules of jax, which register callbacks then."""
    module = {"__name__": "jax._src.some_module", "callback": print}
    call = compile(
        "from jax._src.xla_bridge import register_plugin_callbacks as r; r(callback)", "x", "exec"
    )
    registered = bridge._plugins_registered
    bridge._plugins_registered = False
    try:
        with record_registrations():
            exec(call, module)
            exec(call, {**module, "__name__": "some_plugin"})
        assert bridge._plugin_callbacks.pop() is print
    finally:
        bridge._plugins_registered = registered


def test_a_jax_whose_function_cannot_be_exchanged_is_refused(
    bridge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(bridge, "register_plugin", print)
        with (
            pytest.raises(PluginIncompatible, match=r"jax .*PJRT_NAMES_AND_LI"),
            record_registrations(),
        ):
            raise AssertionError("nothing can be heard")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package of two modules that count how often they are imported."""
    folder = tmp_path / "counted_space" / "counted"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("import counted_space.counted.part as part\nstate = []\n")
    (folder / "part.py").write_text("import sys\nsys.modules['imports_of_part'].append(1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "imports_of_part", [])
    yield "counted_space.counted"
    for name in [n for n in sys.modules if n.startswith("counted_space")]:
        del sys.modules[name]


def imports() -> int:
    return len(sys.modules["imports_of_part"])


def test_a_module_is_imported_apart(package: str) -> None:
    with import_fresh(package) as ours:
        ours.state.append("used up")
    assert [name for name in sys.modules if name.startswith(package)] == []
    theirs = importlib.import_module(package)
    assert theirs.state == []
    assert imports() == 2
    with import_fresh(package) as again:
        assert again.state == []
        assert again is not theirs
    assert importlib.import_module(package) is theirs
    assert sys.modules["counted_space"].counted is theirs
    assert sys.modules[f"{package}.part"] is theirs.part
    assert imports() == 3


def test_objects_of_a_module_stay_alive(package: str) -> None:
    """A plugin passes addresses into the module: of a table, of a capsule's name."""

    class Table:
        pass

    with import_fresh(package) as ours:
        ours.table = Table()
        table = weakref.ref(ours.table)
    del ours
    gc.collect()
    assert table() is not None


def test_extension_modules_are_not_imported_twice() -> None:
    extension = importlib.import_module("numpy._core._multiarray_umath")
    source = importlib.import_module("numpy._core.multiarray")
    assert jax_recorder._is_source(source)
    assert not jax_recorder._is_source(extension)
