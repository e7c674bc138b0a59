"""Plugins for another version of plugrt: they work, or are reported as incompatible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugrt.errors import PluginBroken, PluginError, PluginIncompatible, RegistrationError
from plugrt.interface import VERSION
from plugrt.plugins import Backends
from support.distributions import install, install_plugin
from support.fake_client import FakePlugin
from support.registries import registry

PLUGIN = """
from support.fake_client import FakePlugin
plugin = FakePlugin("chip")
plugin.interface_version = {}
"""


def installed(site: Path, source: str, *requirements: str) -> Backends:
    """Returns a registry with a plugin ``chip`` of chip-dist 3.2, which requires these."""
    info = install_plugin(site, "chip", source, version="3.2")
    lines = "".join(f"Requires-Dist: {requirement}\n" for requirement in requirements)
    (info / "METADATA").write_text((info / "METADATA").read_text() + lines)
    return registry(path=site, JAX_PLATFORMS="chip")


def be_installed(site: Path, version: str) -> None:
    """Makes this version of plugrt and plugrt-sdk appear as installed."""
    for name in ("plugrt", "plugrt-sdk"):
        install(site, name, {}, version=version)


def refused(backends: Backends, kind: type[PluginError] = PluginIncompatible) -> str:
    """Returns the error of selecting ``chip``, the same as in the table."""
    with pytest.raises(kind) as error:
        backends.get("chip")
    assert type(error.value) is kind
    (row,) = backends.table.rows
    assert row.state == ("incompatible" if kind is PluginIncompatible else "broken")
    assert row.reason in str(error.value)
    assert row.cure in str(error.value) or kind is PluginBroken
    return str(error.value)


@pytest.mark.parametrize("ours", [(1, 0), (1, 7)])
@pytest.mark.parametrize(
    "source", [PLUGIN.format((1, 0)), PLUGIN.replace("plugin.i", "# plugin.i")]
)
def test_an_older_minor_version_works(
    site: Path, source: str, ours: tuple[int, int], be_version: Any
) -> None:
    be_version(ours)
    assert installed(site, source).get("chip").platform == "chip"


@pytest.mark.parametrize("theirs", [(1, 0), (1, 9), (0, 3)])
def test_an_older_major_version_is_incompatible(
    site: Path, theirs: tuple[int, int], be_version: Any
) -> None:
    be_version((2, 1))
    text = refused(installed(site, PLUGIN.format(theirs), "plugrt-sdk<0.2,>=0.1", "numpy<9"))
    for fact in (
        f"version {theirs[0]}.{theirs[1]} of plugrt.interface", "has 2.1", "chip-dist 3.2",
        "pip install --upgrade chip-dist", 'pip install "plugrt-sdk<0.2,>=0.1")',
    ):  # fmt: skip
        assert fact in text


NEWER = (VERSION[0], VERSION[1] + 1)


@pytest.mark.parametrize("theirs", [NEWER, (VERSION[0] + 1, 0)])
def test_a_newer_version_is_incompatible(site: Path, theirs: tuple[int, int]) -> None:
    text = refused(installed(site, PLUGIN.format(theirs), "plugrt[trace] (>=0.3,<0.4)"))
    assert f"version {theirs[0]}.{theirs[1]} of plugrt.interface" in text
    assert '; pip install --upgrade "plugrt>=0.3,<0.4"; ' in text


def test_a_newer_version_that_requires_nothing(site: Path) -> None:
    text = refused(installed(site, PLUGIN.format(NEWER)))
    assert "; pip install --upgrade plugrt; " in text


@pytest.mark.parametrize("version", ["(1,)", "'1.0'", "1", "(1, '0')", "None", "(1, True)"])
def test_a_version_that_is_none(site: Path, version: str) -> None:
    text = refused(installed(site, PLUGIN.format(version)), PluginBroken)
    assert "must be a pair of numbers, such as (1, 0)" in text


def test_a_registered_plugin_for_another_version(be_version: Any) -> None:
    be_version((3, 0))
    with pytest.raises(RegistrationError, match=r"version 1\.0 of plugrt\.interface.*has 3\.0"):
        registry(FakePlugin("chip"))


FAILURES = {
    "import": "from plugrt.interface import NoSuchClass",
    "start": """
from support.fake_client import FakePlugin
class Old(FakePlugin):
    def create_client(self, options, distributed=None):
        raise TypeError("Can't instantiate abstract class OldClient")
plugin = Old("chip")
""",
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(
    "requirement",
    [
        "plugrt<0.1",
        "plugrt-sdk>=0.2,<0.3",
        "plugrt (==0.0.9)",
        "plugrt[trace]!=0.1.0",
        "plugrt~=0.4",
    ],
)
def test_failures_outside_the_required_range_are_incompatible(
    site: Path, failure: str, requirement: str
) -> None:
    be_installed(site, "0.1.0")
    text = refused(installed(site, FAILURES[failure], requirement))
    plain = requirement.replace("[trace]", "").replace(" (", "").replace(")", "")
    name = plain.rstrip("0123456789.,<>=!~")
    assert "NoSuchClass" in text or "OldClient" in text  # the error of the import
    assert f"chip-dist 3.2 requires {plain}, and {name} 0.1.0 is installed" in text
    assert f'(or, for the one that is installed: pip install "{plain}")' in text


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(
    "requirement",
    ["plugrt>=0.1,<0.2", "plugrt-sdk", "plugrt==0.1.*", "plugrt~=0.1.0", "numpy<0.1",
     'plugrt<0.1; extra == "old"', "plugrt<=0.1"],
)  # fmt: skip
def test_failures_inside_the_required_range_are_broken(
    site: Path, failure: str, requirement: str
) -> None:
    be_installed(site, "0.1.0")
    assert "requires" not in refused(installed(site, FAILURES[failure], requirement), PluginBroken)


def test_plugins_that_work_outside_the_required_range_are_used(site: Path) -> None:
    """Packages often state a narrower range than necessary."""
    be_installed(site, "7.0")
    assert installed(site, PLUGIN.format((1, 0)), "plugrt<0.2").get("chip").platform == "chip"
