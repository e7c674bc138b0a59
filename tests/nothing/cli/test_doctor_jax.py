"""``plugrt doctor`` reports whether stock JAX finds each plugin, and the reason if it does not."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from plugrt.cli.doctor_jax import explain, explain_missing_jax
from support.distributions import install, install_plugin, run_cli, run_python
from support.doctor import show
from support.registries import registry
from support.requirements import needs_jax

OFFERS = "import sys\ndef initialize(): print('initialised', __name__, file=sys.stderr)\n"


def add(folder: Path, name: str, entry_points: dict[str, str], *, requires: str = "") -> None:
    """Installs a distribution with a module that JAX can initialise, named as the platform."""
    groups = {group: {name: value} for group, value in entry_points.items()}
    info = install(folder, f"{name}-dist", groups, {f"{name}_for_jax": OFFERS})
    if requires:
        with (info / "METADATA").open("a") as metadata:
            metadata.write(f"Requires-Dist: {requires}\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plugins of each kind, and metadata of jax and jaxlib without their modules."""
    add(tmp_path, "both", {"plugrt.plugins": "both_module:plugin", "jax_plugins": "both_for_jax"})
    add(tmp_path, "ours", {"plugrt.plugins": "ours_module:plugin"})
    add(tmp_path, "theirs", {"jax_plugins": "theirs_for_jax"})
    add(tmp_path, "torchs", {"torch_xla.plugins": "torchs_module:Plugin"})
    add(tmp_path, "xlas", {"xla_plugins": "xlas_for_jax"})
    add(tmp_path, "object", {"jax_plugins": "object_for_jax:initialize"})
    add(tmp_path, "gone", {"jax_plugins": "nosuch.for_jax"})
    add(tmp_path, "part", {"jax_plugins": "part_for_jax.nosuch"})
    spaced = tmp_path / "jax_plugins" / "spaced"
    spaced.mkdir(parents=True)
    (spaced / "__init__.py").write_text(OFFERS)
    install(tmp_path, "jax", {}, version="9.0")
    install(tmp_path, "jaxlib", {}, version="9.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def rows(folder: Path, **environ: str) -> dict[str, dict[str, Any]]:
    table = registry(path=folder, **environ).table
    return {row.name: row.as_dict() for row in table.rows}


NO_GROUP = "{0}-dist 1.0 has no entry point in the group jax_plugins"
WANTED = {
    "both": (True, "both-dist 1.0 has both_for_jax in the group jax_plugins"),
    "theirs": (True, "theirs-dist 1.0 has theirs_for_jax in the group jax_plugins"),
    "spaced": (True, "jax_plugins.spaced is a module of the namespace package jax_plugins"),
    "ours": (False, NO_GROUP.format("ours")),
    "torchs": (False, NO_GROUP.format("torchs")),
    "xlas": (False, NO_GROUP.format("xlas")),
    "object": (False, "its entry point names the object object_for_jax:initialize, and JAX "
                      "imports that text as a module"),
    "gone": (False, "the module nosuch.for_jax of its entry point is not there"),
    "part": (False, "the module part_for_jax.nosuch of its entry point is not there"),
}  # fmt: skip


def test_the_entry_points_of_each_kind_of_package_for_jax(folder: Path) -> None:
    found = {name: explain(row, (), {}) for name, row in rows(folder).items()}
    assert {n: (r["found"], r["because"]) for n, r in found.items()} == WANTED


@needs_jax
def test_stock_jax_finds_the_same(folder: Path) -> None:
    for name in ("jax", "jaxlib"):  # so that the installed ones are imported
        (folder / f"{name}-9.0.dist-info").rename(folder / f"{name}-9.0")
    done = run_python("from jax._src.xla_bridge import *; discover_pjrt_plugins()", folder)
    said = {line.split()[1] for line in done.stderr.splitlines() if line.startswith("initialised")}
    names = {module.removeprefix("jax_plugins.").removesuffix("_for_jax") for module in said}
    assert names & WANTED.keys() == {name for name, (found, _) in WANTED.items() if found}


def test_a_platform_that_jax_has_of_its_own_is_named_with_its_extra(folder: Path) -> None:
    with (folder / "jax-9.0.dist-info" / "METADATA").open("a") as metadata:
        metadata.write("Provides-Extra: ours12\nProvides-Extra: ours13\nProvides-Extra: other\n")
    answer = explain(rows(folder)["ours"], (), {})
    own = 'pip install "jax[ours12]" (or "jax[ours13]")'
    assert answer["because"] == f"{NO_GROUP.format('ours')}; JAX has one of its own: {own}"
    assert explain(rows(folder)["torchs"], (), {})["because"] == NO_GROUP.format("torchs")


def test_files_of_a_distribution_in_the_namespace_package_count(folder: Path) -> None:
    info = install_plugin(folder, "filed")
    record = "jax_plugins/spaced/__init__.py,,\njax_plugins/spaced/data.bin,,\n"
    (info / "RECORD").write_text(record)
    found = explain(rows(folder)["filed"], (), {})
    because = "filed-dist 1.0 has jax_plugins.spaced in the group jax_plugins"
    assert found == {"found": True, "because": because}


@pytest.mark.parametrize(
    ("platforms", "aliases", "found"),
    [
        ((), {}, True),
        (("both",), {}, True),
        (("cpu", "both"), {}, True),
        (("chip",), {"chip": ("other", "both")}, True),
        (("cpu",), {}, False),
        (("chip",), {"chip": ("other",)}, False),
    ],
)
def test_jax_platforms_selects(
    folder: Path, platforms: tuple[str, ...], aliases: dict[str, tuple[str, ...]], found: bool
) -> None:
    answer = explain(rows(folder)["both"], platforms, aliases)
    assert answer["found"] is found
    if not found:
        assert answer["because"] == f"JAX_PLATFORMS={platforms[0]} does not name it"


def test_a_plugin_that_is_blocked_here_is_there_for_jax(folder: Path) -> None:
    blocked = rows(folder, PLUGRT_PLUGINS_BLOCK="both")["both"]
    assert blocked["state"] == "not selected"
    assert explain(blocked, (), {})["found"]


@pytest.mark.parametrize(
    ("name", "state", "found"),
    [
        ("theirs", "broken", False),
        ("theirs", "unavailable", False),  # its initialize() registers nothing
        ("theirs", "incompatible", True),  # JAX may have the feature that plugrt lacks
        ("both", "broken", False),
        ("both", "unavailable", True),
    ],
)
def test_broken_plugins_are_not_found_by_jax(
    folder: Path, name: str, state: str, found: bool
) -> None:
    row = rows(folder)[name] | {"state": state}
    answer = explain(row, (), {})
    assert answer["found"] is found
    assert found or answer["because"] == f"it is {state}"


def test_libraries_of_the_environment_are_jaxs_too(folder: Path) -> None:
    library = folder / "lib.so"
    library.touch()
    row = rows(folder, PJRT_NAMES_AND_LIBRARY_PATHS=f"mine:{library}")["mine"]
    because = "PJRT_NAMES_AND_LIBRARY_PATHS names it"
    assert explain(row, (), {}) == {"found": True, "because": because}


@pytest.mark.parametrize("has_core", [True, False])
def test_a_device_in_python_needs_the_part_in_c_of_the_sdk(
    folder: Path, monkeypatch: pytest.MonkeyPatch, has_core: bool
) -> None:
    """pip installs the wheel without this part if glibc is too old for the other wheel."""
    points = {"plugrt.plugins": "mine_module:plugin", "jax_plugins": "mine_for_jax"}
    add(folder, "mine", points, requires="plugrt-sdk (>=0.1)")
    install(folder, "plugrt-sdk", {}, {"plugrt_sdk.__init__": "", "plugrt_sdk.export.x": ""}, "7.0")
    if has_core:
        (folder / "plugrt_sdk/export/_core.abi3.so").touch()
    monkeypatch.delitem(sys.modules, "plugrt_sdk", raising=False)
    answer = explain(rows(folder)["mine"], (), {})
    assert answer["found"] is has_core
    if not has_core:
        assert "plugrt-sdk 7.0 is installed without its part in C" in answer["because"]


@pytest.mark.parametrize(
    ("change", "platforms", "found"),
    [
        ({"priority": -1}, (), False),
        ({"priority": -1}, ("mine",), True),
        ({"priority": 400}, (), True),
        ({"state": "unavailable"}, (), False),
        ({"state": "unavailable"}, ("mine",), True),  # JAX fails with the reason
    ],
)
def test_the_rules_by_which_the_sdk_offers_to_jax(
    folder: Path, change: dict[str, Any], platforms: tuple[str, ...], found: bool
) -> None:
    points = {"plugrt.plugins": "mine_module:plugin", "jax_plugins": "mine_for_jax"}
    add(folder, "mine", points, requires="plugrt-sdk")
    answer = explain(rows(folder)["mine"] | change, platforms, {})
    assert answer["found"] is found
    assert found or "only where JAX_PLATFORMS names it" in answer["because"]


def test_a_jaxlib_of_another_version(folder: Path) -> None:
    assert explain_missing_jax() == ""
    with (folder / "jax-9.0.dist-info" / "METADATA").open("a") as metadata:
        metadata.write("Requires-Dist: jaxlib (<=9.5,>=9.1)\nRequires-Dist: x; extra == 'y'\n")
    says = "jax 9.0 requires jaxlib<=9.5,>=9.1, and jaxlib 9.0 is installed"
    assert explain_missing_jax() == says
    assert explain(rows(folder)["both"], (), {}) == {"found": False, "because": says}


def test_without_jax(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(folder)])
    for name in ("jaxlib", "jax"):
        (folder / f"{name}-9.0.dist-info").rename(folder / f"{name}-9.0")
        assert explain_missing_jax() == f"{name} is not installed"


def test_the_command_says_it(folder: Path, tmp_path: Path) -> None:
    install_plugin(folder, "a")
    page = tmp_path / "page.html"
    arguments = ("doctor", "--json", "--html", str(page))
    examined = json.loads(run_cli(*arguments, folders=(folder,), JAX_PLATFORMS="a").stdout)
    found = {row["name"]: row["jax"] for row in examined["candidates"]}
    assert found["a"] == {"found": False, "because": NO_GROUP.format("a")}
    assert found["both"]["because"] == "JAX_PLATFORMS=a does not name it"
    assert "JAX will find it: </strong>no, because a-dist 1.0 has no entry" in page.read_text()
    printed = show(examined)
    assert "JAX will find it" in printed
    assert "no, because a-dist 1.0 has no entry point in the group jax_plugins" in printed
