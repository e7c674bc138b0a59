"""A name means one client: random tables of plugins that share names, aliases and platforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import plugrt
from plugrt.errors import PluginError, UnknownPlatform
from plugrt.interface import Client, OptionValue
from plugrt.plugins import Backends
from plugrt.plugins.vendors import ALIASES
from support.fake_client import FakeClient, FakePlugin
from support.registries import registry

WORDS = ("cpu", "gpu", "cuda", "a", "b", "c")


class Reporting(FakePlugin):
    """A plugin whose client reports a platform that may be any other plugin's name."""

    def __init__(self, name: str, platform: str, **attributes: Any) -> None:
        super().__init__(name, **attributes)
        self.reported = platform

    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Any | None = None
    ) -> Client:
        self.clients.append(FakeClient(self.reported))
        return self.clients[-1]


def means(client: Client, name: str, plugins: list[Reporting]) -> bool:
    """Whether the written rule lets ``name`` mean this client."""
    (owner,) = [p for p in plugins if client in p.clients]
    if any(p.name == name for p in plugins):
        return owner.name == name
    # An alias means plugins by name, or by what they are called besides.
    meant = {name, *ALIASES.get(name, ())}
    aliased = {p.name for p in plugins if not meant.isdisjoint((p.name, *p.aliases))}
    if aliased & {p.name for p in plugins if p.clients}:
        return owner.name in aliased
    reporting = [p for p in plugins if p.clients and p.reported == name]
    return reporting == [owner]


TABLES = st.lists(
    st.tuples(
        st.sampled_from(WORDS),
        st.sampled_from(WORDS),
        st.integers(0, 3),
        st.lists(st.sampled_from(WORDS), max_size=2),
    ),
    min_size=1, max_size=5, unique_by=lambda row: row[0],
)  # fmt: skip


@given(TABLES, st.data())
def test_what_jax_platforms_names_is_what_a_name_gives(
    rows: list[tuple[str, str, int, list[str]]], data: st.DataObject
) -> None:
    plugins = [Reporting(n, p, priority=r, aliases=tuple(a)) for n, p, r, a in rows]
    names = data.draw(st.lists(st.sampled_from([p.name for p in plugins]), min_size=1, unique=True))
    of = registry(*plugins, JAX_PLATFORMS=",".join(names))
    found = plugrt.backends(of)
    assert list(found) == names
    assert len({id(client) for client in found.values()}) == len(names)
    for plugin in plugins:
        assert plugin.clients == ([found[plugin.name]] if plugin.name in names else [])
    _every_name_gives_what_it_means(of, plugins)


@given(TABLES, st.data())
def test_in_an_automatic_choice_too_whatever_was_asked_for_before(
    rows: list[tuple[str, str, int, list[str]]], data: st.DataObject
) -> None:
    plugins = [Reporting(n, p, priority=r, aliases=tuple(a)) for n, p, r, a in rows]
    of = registry(*plugins)
    of.initialise()
    for name in data.draw(st.lists(st.sampled_from([p.name for p in plugins]), unique=True)):
        (plugin,) = [p for p in plugins if p.name == name]
        assert [plugrt.get_backend(name, of)] == plugin.clients
        _every_name_gives_what_it_means(of, plugins, start=False)


def _every_name_gives_what_it_means(
    of: Backends, plugins: list[Reporting], start: bool = True
) -> None:
    names = {p.name for p in plugins if start or p.clients}
    for word in (*WORDS, *WORDS):  # the second time from what is remembered
        if not start and (word not in names or any(word in p.aliases for p in plugins)):
            continue  # asking would start something
        try:
            client = plugrt.get_backend(word, of)
        except PluginError:
            continue
        assert means(client, word, plugins)


def test_a_platform_that_two_report_means_neither() -> None:
    plugins = [Reporting("a", "p"), Reporting("b", "p"), Reporting("c", "q")]
    of = registry(*plugins, JAX_PLATFORMS="a,b,c")
    assert plugrt.get_backend("q", of) is plugins[2].clients[0]
    with pytest.raises(UnknownPlatform, match=r"'p'.* a, b all report it"):
        plugrt.get_backend("p", of)


def test_a_platform_becomes_ambiguous_when_another_starts() -> None:
    plugins = [Reporting("a", "p", priority=900), Reporting("b", "p")]
    of = registry(*plugins)
    assert plugrt.get_backend("p", of) is plugins[0].clients[0]
    assert plugrt.get_backend("b", of) is plugins[1].clients[0]
    with pytest.raises(UnknownPlatform, match="a, b all report it"):
        plugrt.get_backend("p", of)


def test_what_is_excluded_or_blocked_is_not_replaced_by_who_reports_its_name() -> None:
    """JAX: ``Unknown backend cpu. Available backends are ['mychip']``."""
    for environ in ({"JAX_PLATFORMS": "mychip"}, {"PLUGRT_PLUGINS_BLOCK": "cpu"}):
        of = registry(Reporting("mychip", "cpu"), Reporting("cpu", "cpu", priority=0), **environ)
        assert plugrt.default_backend(of) == "cpu"
        with pytest.raises(PluginError, match=r"leaves 'cpu' out|blocked"):
            plugrt.get_backend("cpu", of)
