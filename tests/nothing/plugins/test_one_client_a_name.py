"""A name means one client: plugins whose clients report the name of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import plugrt
from plugrt.errors import PluginError, UnknownPlatform
from plugrt.interface import Client, OptionValue
from support.fake_client import FakeClient, FakePlugin
from support.registries import registry


class Reporting(FakePlugin):
    """A plugin whose client reports any platform, such as another plugin's name."""

    def __init__(self, name: str, platform: str, **attributes: Any) -> None:
        super().__init__(name, **attributes)
        self.reported = platform

    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Any | None = None
    ) -> Client:
        self.clients.append(FakeClient(self.reported))
        return self.clients[-1]


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


def test_excluded_names_are_not_replaced_by_reported_ones() -> None:
    """JAX: ``Unknown backend cpu. Available backends are ['mychip']``."""
    for environ in ({"JAX_PLATFORMS": "mychip"}, {"PLUGRT_PLUGINS_BLOCK": "cpu"}):
        of = registry(Reporting("mychip", "cpu"), Reporting("cpu", "cpu", priority=0), **environ)
        assert plugrt.default_backend(of) == "cpu"
        with pytest.raises(PluginError, match=r"leaves 'cpu' out|blocked"):
            plugrt.get_backend("cpu", of)
