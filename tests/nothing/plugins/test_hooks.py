"""The hooks: offering plugins, aliases, hearing of clients; misuse has an owner."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugrt.config import Config
from plugrt.errors import PluginBroken
from plugrt.plugins import Registry, backends, hookspecs
from plugrt.plugins.loading import load
from plugrt.plugins.record import State
from support.distributions import install

OFFERS = """
    from plugrt.plugins import hookimpl
    from support.fake_client import FakePlugin

    heard = []

    @hookimpl
    def plugrt_offer_plugins():
        return [FakePlugin("one", priority=2), FakePlugin("two", priority=1)]

    @hookimpl
    def plugrt_add_aliases():
        return {"pair": ["two", "one"]}

    @hookimpl
    def plugrt_client_created(name):  # fewer arguments than there are
        heard.append(name)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def registry(site: Path, source: str, **environ: str) -> Registry:
    install(site, "pair-dist", {"plugrt.plugins": {"one": "pair_hooks"}}, {"pair_hooks": source})
    return Registry(Config(environ), path=[str(site)])


def test_one_package_offers_two_plugins_and_an_alias(site: Path) -> None:
    made = registry(site, OFFERS)
    assert backends.default_backend(made) == "one"
    assert [r.name for r in made.table()] == ["one", "two"]
    assert {r.who for r in made.table()} == {"pair-dist 1.0"}
    assert backends.get_backend("pair", made).platform == "two"
    assert sys.modules["pair_hooks"].heard == ["one", "two"]


def test_a_listener_that_raises_is_named_and_costs_nothing(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = registry(site, OFFERS.replace("heard.append(name)", "1 / 0"))
    assert backends.default_backend(made) == "one"
    assert "plugrt_client_created of pair-dist 1.0 raised ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (("plugrt_add_aliases", "plugrt_add_alias"), ["plugrt_add_alias", "plugrt_offer_plugins"]),
        (("created(name)", "created(nom)"), ["nom"]),
        (('"one", priority', '"three", priority'), ["'one'", "'three', 'two'"]),
        (("FakePlugin(\"two\", priority=1)", "3"), ["plugrt_offer_plugins", "int"]),
        (("return [FakePlugin", "raise OSError('disk')\n        return [FakePlugin"), ["disk"]),
    ],
)  # fmt: skip
def test_misuse_names_distribution_and_hook(
    site: Path, change: tuple[str, str], facts: list[str]
) -> None:
    made = registry(site, OFFERS.replace(*change))
    (record,) = made.table()
    with pytest.raises(PluginBroken) as error:
        load(record, made)
    for fact in ("pair-dist 1.0", *facts):
        assert fact in str(error.value)
    assert record.state is State.BROKEN


def test_every_hook_is_prefixed_and_says_when_it_is_called() -> None:
    hooks = {n: f for n, f in vars(hookspecs).items() if n.startswith("plugrt_")}
    assert len(hooks) == 4
    for hook in hooks.values():
        assert "Called" in (inspect.getdoc(hook) or "")
