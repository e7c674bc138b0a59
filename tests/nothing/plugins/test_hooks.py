"""The hooks: plugins, aliases, events of clients; errors name the package that misuses one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import plugrt
from plugrt.errors import PluginBroken
from plugrt.plugins import Backends
from plugrt.plugins.starting.loading import load
from support.distributions import install
from support.registries import registry

OFFERS = """
    from plugrt.plugins import hookimpl
    from support.fake_client import FakePlugin

    heard = []

    @hookimpl
    def plugrt_offer_plugins():
        return [FakePlugin("one", priority=2), FakePlugin("two", priority=1)]

    @hookimpl
    def plugrt_client_created(name):  # fewer arguments than there are
        heard.append(name)
"""


def hooked(site: Path, source: str, names: Sequence[str] = ("one", "two")) -> Backends:
    entries = {"plugrt.plugins": dict.fromkeys(names, "pair_hooks")}
    install(site, "pair-dist", entries, {"pair_hooks": source})
    return registry(path=site)


def test_one_package_offers_two_plugins_each_with_its_entry_point(site: Path) -> None:
    made = hooked(site, OFFERS)
    assert plugrt.default_backend(made) == "one"
    assert [r.name for r in made.table.rows] == ["one", "two"]
    assert {r.who for r in made.table.rows} == {"pair-dist 1.0"}
    assert plugrt.get_backend("two", made).platform == "two"
    assert sys.modules["pair_hooks"].heard == ["one", "two"]


def test_a_plugin_that_no_entry_point_names_is_left_out_with_a_warning(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its name is unknown before the package's code runs, so it cannot be chosen reliably."""
    made = hooked(site, OFFERS.replace('"two", priority=1', '"third", priority=900'), ["one"])
    assert plugrt.default_backend(made) == "one"
    (message,) = caplog.messages
    for fact in ("pair-dist 1.0", "'third'", "third = 'pair_hooks'", "plugrt.plugins"):
        assert fact in message
    assert [r.name for r in made.table.rows] == ["one"]


def test_a_listener_that_raises_is_named_and_costs_nothing(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = hooked(site, OFFERS.replace("heard.append(name)", "1 / 0"))
    assert plugrt.default_backend(made) == "one"
    assert "plugrt_client_created of pair-dist 1.0 raised ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (("plugrt_client_created", "plugrt_client_made"),
         ["plugrt_client_made", "plugrt_offer_plugins"]),
        (("created(name)", "created(nom)"), ["nom"]),
        (('"one", priority', '"three", priority'), ["'one'", "'three', 'two'"]),
        (("FakePlugin(\"two\", priority=1)", "3"), ["plugrt_offer_plugins", "int"]),
        (("return [FakePlugin", "raise OSError('disk')\n        return [FakePlugin"), ["disk"]),
    ],
)  # fmt: skip
def test_misuse_names_distribution_and_hook(
    site: Path, change: tuple[str, str], facts: list[str]
) -> None:
    made = hooked(site, OFFERS.replace(*change))
    record, _ = made.table.rows
    with pytest.raises(PluginBroken) as error:
        load(record, made.table)
    for fact in ("pair-dist 1.0", *facts):
        assert fact in str(error.value)
    assert record.state == "broken"
