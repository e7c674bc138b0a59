"""Hooks of packages are called only when needed, each by itself."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

import plugrt
from plugrt.errors import PluginBroken
from plugrt.execution.compilation.compiler import installed_rewriters
from plugrt.plugins import Record, hookspecs
from plugrt.plugins.discovery.installed_plugins import HOOK_GROUPS
from plugrt.plugins.offers.offers import Kept, collect_offers
from support.distributions import install
from support.registries import registry

FACTS = """
    from plugrt.plugins import hookimpl

    @hookimpl
    def plugrt_doctor_facts():
        return {"driver": "1.5"}
"""


def table_of(site: Path, **environ: str) -> Any:
    return registry(path=site, **environ).table


def collect(table: Any, name: str = "") -> list[Any]:
    def read(record: Record, answer: Any) -> Any:
        if not isinstance(answer, dict):
            raise PluginBroken(f"it gives {answer!r}, no dict")
        return record.who, answer

    return list(collect_offers(table, "plugrt.doctor", "facts", read, name=name))


def package(site: Path, source: str, name: str = "sick", requires: str = "") -> None:
    module = f"{name}_facts"
    info = install(site, f"{name}-dist", {"plugrt.doctor": {name: module}}, {module: source})
    with (info / "METADATA").open("a") as metadata:
        metadata.write(requires)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (("return", "raise OSError('disk') or"), "OSError: disk"),
        (("return", "raise SystemExit or"), "SystemExit"),
        (('{"driver": "1.5"}', "3"), "it gives 3, no dict"),
        (("from plugrt.plugins", "import nowhere\n    from plugrt.plugins"), "nowhere"),
        (("plugrt_doctor_facts", "plugrt_doctor_fact"), "the hooks are plugrt_add_commands, "),
        (("plugrt_doctor_facts()", "plugrt_doctor_facts(self)"), "self"),
        (("@hookimpl", ""), "does not implement plugrt_doctor_facts"),
        (("plugrt_doctor_facts():", "plugrt_program_rewriters():"), "does not implement"),
        (("@hookimpl", "interface_version = (2, 0)\n    @hookimpl"),
         "written for version 2.0 of plugrt.interface, and plugrt"),
        (("@hookimpl", "interface_version = (1, 99)\n    @hookimpl"), "pip install --upgrade"),
        (("@hookimpl", "interface_version = '1'\n    @hookimpl"), "a pair of numbers"),
    ],
)  # fmt: skip
def test_a_package_that_fails_is_named_and_the_others_go_on(
    site: Path, caplog: pytest.LogCaptureFixture, change: tuple[str, str], fact: str
) -> None:
    package(site, FACTS, "good")
    assert change[0] in FACTS
    package(site, FACTS.replace(*change))
    package(site, FACTS, "tall")
    table = table_of(site)
    assert [who for who, _ in collect(table)] == ["good-dist 1.0", "tall-dist 1.0"]
    (message,) = caplog.messages
    assert message.startswith("the facts of sick-dist 1.0 are left out: ")
    assert fact in message
    assert message.endswith("; PLUGRT_PLUGINS_BLOCK=sick-dist silences this")
    with pytest.raises(PluginBroken, match=r"the facts of sick-dist 1\.0 are left out"):
        collect(table_of(site, PLUGRT_STRICT_PLUGINS="1"))
    for blocked in ("sick", "sick-dist", "Sick_Dist"):
        caplog.clear()
        assert len(collect(table_of(site, PLUGRT_PLUGINS_BLOCK=blocked))) == 2
        assert caplog.messages == []


def test_a_package_for_another_plugrt_says_which(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    package(site, FACTS.replace("return", "raise OSError or"), requires="Requires-Dist: plugrt>9\n")
    assert collect(table_of(site)) == []
    assert "sick-dist 1.0 requires plugrt>9" in caplog.text


def test_a_package_is_imported_when_it_is_asked_and_once(site: Path) -> None:
    package(site, FACTS, "lazy")
    table = table_of(site)
    assert [record.value for record in table.implementing("plugrt.doctor")] == ["lazy_facts"]
    kept = Kept("plugrt.doctor", "facts", lambda record, answer: record.name)
    assert kept.get(table, "other") == ()
    assert "lazy_facts" not in sys.modules, "only those of a name are asked"
    assert kept.get(table, "lazy") == ("lazy",)
    del sys.modules["lazy_facts"].plugrt_doctor_facts
    assert kept.get(table, "lazy") == ("lazy",), "what was offered is kept"
    plugrt.clear_backends(registry())
    assert kept.get(table, "lazy") == (), "until backends are cleared"


def test_two_entry_points_of_one_object_count_once(site: Path) -> None:
    source = """
        from plugrt.plugins import hookimpl

        def look(program, client): ...

        @hookimpl
        def plugrt_program_rewriters():
            return [look]
    """
    entries = {"plugrt.rewriters": {"a": "twice_named", "b": "twice_named"}}
    install(site, "twice", entries, {"twice_named": source})
    assert len(installed_rewriters(table_of(site))) == 1


def test_every_hook_has_a_group_and_says_when_it_is_called() -> None:
    hooks = {n: f for n, f in vars(hookspecs).items() if n.startswith("plugrt_")}
    assert set(hooks) == {*HOOK_GROUPS.values(), "plugrt_offer_plugins", "plugrt_client_created"}
    for hook in hooks.values():
        assert "Called" in (inspect.getdoc(hook) or "")
