"""`Table`: the rows of all sources, registration and its misuse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import plugrt.plugins
from plugrt import clear_backends, get_backend
from plugrt.errors import PluginError, RegistrationError
from plugrt.plugins import Plugin, Record
from plugrt.plugins.record import Source, State
from support.distributions import install, install_plugin, run_warm
from support.fake_client import FakePlugin
from support.registries import registry


def test_a_registered_plugin_is_a_row() -> None:
    plugin = FakePlugin("a", priority=7)
    made = registry()
    made.register(plugin)
    (row,) = made.table.rows
    assert (row.name, row.source, row.state, row.priority) == ("a", "registered", "found", 7)
    assert row.plugin is plugin
    assert re.fullmatch(r"registered by .*test_table \(test_table\.py:\d+\)", row.who)


def test_a_row_names_the_program_that_registered_it() -> None:
    ran = run_warm("""
        from plugrt import plugins
        from support.fake_client import FakePlugin
        plugins.register(FakePlugin("a"))
        print([row.who for row in plugins.table() if row.name == "a"])
    """)
    assert ran.stdout == "['registered by __main__ (<string>:4)']\n", ran.stderr


def test_table_lists_all_sources_in_order_and_loads_nothing(tmp_path: Path) -> None:
    install_plugin(tmp_path, "entry", "import os; os.abort()")
    install_plugin(tmp_path, "jaxy", group="jax_plugins")
    made = registry(
        FakePlugin("mine"), path=tmp_path, PJRT_NAMES_AND_LIBRARY_PATHS="lib:/x.so,broken"
    )
    rows = made.table.rows
    assert [r.name for r in rows] == ["mine", "lib", "item 2", "entry", "jaxy"]
    assert all(r.plugin is None for r in rows if r.name != "mine")
    for row in rows:
        assert row.as_dict()["state"] in list(State)


def test_a_registered_plugin_hides_an_installed_one(tmp_path: Path) -> None:
    install_plugin(tmp_path, "x")
    for scanned_first in (False, True):
        made = registry(path=tmp_path)
        if scanned_first:
            assert made.table.rows
        made.register(FakePlugin("x"))
        assert [(r.source, r.state) for r in made.table.rows] == [
            ("registered", "found"),
            ("plugrt.plugins", "duplicate"),
        ]


class Nameless(Plugin):
    pass


@pytest.mark.parametrize(
    ("wrong", "facts"),
    [
        (FakePlugin, ["the class", "FakePlugin()"]),
        (int, ["the class", "instance"]),
        (3, ["int", "subclass Plugin"]),
        (Nameless(), ["no name", "JAX_PLATFORMS"]),
        (FakePlugin(""), ["no name"]),
        (FakePlugin("a,b"), ["'a,b'", "letters"]),
        (FakePlugin("a b"), ["'a b'", "letters"]),
        (FakePlugin("x", priority="high"), ["priority", "'high'", "int"]),  # type: ignore[arg-type]
        (FakePlugin("x", aliases="gpu"), ["aliases", "tuple"]),
    ],
)
def test_misuse_says_what_is_wrong_and_how_to_mend_it(wrong: Any, facts: list[str]) -> None:
    made = registry()
    with pytest.raises(RegistrationError) as error:
        made.register(wrong)
    for fact in facts:
        assert fact in str(error.value)
    assert made.table.rows == []


def test_the_same_name_twice() -> None:
    made = registry(FakePlugin("x"))
    with pytest.raises(RegistrationError, match="'x' is already used"):
        made.register(FakePlugin("x"))


def test_registration_after_initialisation() -> None:
    made = registry(FakePlugin("x"))
    made.initialise()
    with pytest.raises(RegistrationError, match=r"too late.*\(x\).*clear_backends"):
        made.register(FakePlugin("y"))
    clear_backends(made)
    made.register(FakePlugin("y"))
    assert get_backend("y", made).platform == "y"


def test_registering_after_a_failure_gives_another_try() -> None:
    made = registry(JAX_PLATFORMS="late")
    with pytest.raises(plugrt.errors.UnknownPlatform):
        made.initialise()
    made.register(FakePlugin("late"))
    assert made.initialise().names == ("late",)


def test_aliases_come_from_hints_metadata_and_plugins(tmp_path: Path) -> None:
    install(tmp_path, "d", {"plugrt.aliases": {"accel": "chip", "gpu": "chip"}})
    made = registry(FakePlugin("x", aliases=("accel",)), path=tmp_path)
    assert made.table.aliases["accel"] == ("chip", "x")
    assert made.table.aliases["gpu"][0] == "cuda"
    assert made.table.aliases["gpu"][-1] == "chip"


def test_rows_are_found_by_name_and_alias(tmp_path: Path) -> None:
    install_plugin(tmp_path, "xla_chip", group="xla_plugins")
    made = registry(FakePlugin("x"), path=tmp_path)
    assert [row.name for row in made.table.find("x", "asked")] == ["x"]
    assert [row.name for row in made.table.find("chip", "asked")] == ["xla_chip"]


def test_the_public_names() -> None:
    for name in plugrt.plugins.__all__:
        assert getattr(plugrt.plugins, name) is not None
    assert plugrt.plugins.table() == tuple(plugrt.plugins.process_backends().table.rows)
    with pytest.raises(AttributeError, match="nosuch"):
        plugrt.plugins.nosuch  # noqa: B018


USABLE = {"found", "loaded", "initialised"}


@pytest.mark.parametrize("source", list(Source))
@pytest.mark.parametrize("distribution", ["", "chip-dist"])
@pytest.mark.parametrize("state", list(State))
def test_each_state_of_a_row_that_is_of_no_use_has_a_cure(
    state: State, distribution: str, source: Source
) -> None:
    """Earlier, absent libraries, absent hardware and failed starts had no cure."""
    row = Record("chip", source, distribution)
    row.set_state(state, "why")
    assert bool(row.cure) == (state not in USABLE)
    assert "chip" in row.cure or state in USABLE
    row.set_state(state, "why", "what to do")
    assert row.cure == "what to do"


def test_a_cure_is_that_of_the_last_failure(tmp_path: Path) -> None:
    """Earlier, the cure after a failed start still described how to select the plugin."""
    failing = FakePlugin("bad", priority=-1, error=ValueError("v"))
    made = registry(FakePlugin("good"), failing, path=tmp_path)
    install_plugin(tmp_path, "absent", "raise ImportError('x')")
    made.get()
    rows = {row.name: row for row in made.table.rows}
    assert rows["bad"].cure == "JAX_PLATFORMS=bad selects it"
    for name in ("bad", "absent"):
        with pytest.raises(PluginError):
            made.get(name)
        assert "selects it" not in rows[name].cure
        assert f"PLUGRT_PLUGINS_BLOCK={name} excludes it" in rows[name].cure
