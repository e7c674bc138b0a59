"""The trial of a JAX plugin's code is cached until a file that the code read changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plugrt import config
from plugrt.plugins.starting.loading import load
from plugrt.plugins.starting.plugin_inputs import describe_jax
from plugrt.plugins.starting.probe_cache import cache_folder
from support.made_for_jax import REGISTERS, made_for_jax
from support.registries import registry
from support.requirements import needs_jax


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty cache folder."""
    with config.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


def start(site: Path) -> object:
    """Returns the registrations of a program's start."""
    made = registry(path=site)
    (row,) = made.table.rows
    return load(row, made.table)


def rewrite(path: Path) -> None:
    path.write_text(path.read_text() + "#")


Change = Callable[[Path, pytest.MonkeyPatch], object]
READS: dict[str, tuple[str, Change, Change]] = {
    # files that initialize() reads; a change of them, and of another file
    "a variable": (
        'found = os.environ.get("CHIP_MODE")',
        lambda site, patch: patch.setenv("CHIP_MODE", "2"),
        lambda site, patch: patch.setenv("CHIP_SECRET", "2"),
    ),
    "a variable by bytes": (
        'found = os.environb.get(b"CHIP_MODE")',
        lambda site, patch: patch.setenv("CHIP_MODE", "2"),
        lambda site, patch: patch.setenv("CHIP_SECRET", "2"),
    ),
    "whether a variable is there": (
        'found = "CHIP_MODE" in os.environ',
        lambda site, patch: patch.setenv("CHIP_MODE", ""),
        lambda site, patch: patch.setenv("CHIP_SECRET", ""),
    ),
    "a setting of jax": (
        "import jax; found = jax.config.jax_platforms",
        lambda site, patch: patch.setenv("JAX_PLATFORMS", "chip"),
        lambda site, patch: patch.setenv("PLUGRT_STRICT_PLUGINS", "1"),
    ),
    "a file": (
        'found = open(SITE + "/facts").read()',
        lambda site, patch: rewrite(site / "facts"),
        lambda site, patch: rewrite(site / "other"),
    ),
    "a file by its path": (
        'import pathlib; found = pathlib.Path(SITE, "facts").read_text()',
        lambda site, patch: rewrite(site / "facts"),
        lambda site, patch: (site / "more").touch(),
    ),
    "a file in the working folder": (
        'found = os.path.exists("card")',
        lambda site, patch: patch.chdir("/"),
        lambda site, patch: (site / "more").touch(),
    ),
    "whether a file is there": (
        'found = os.path.exists(SITE + "/card")',
        lambda site, patch: (site / "card").touch(),
        lambda site, patch: (site / "more").touch(),
    ),
    "a folder": (
        "import glob; found = len(glob.glob(SITE + '/cards/*'))",
        lambda site, patch: (site / "cards" / "1").touch(),
        lambda site, patch: (site / "more").touch(),
    ),
    "a module": (
        "import chip_facts",
        lambda site, patch: rewrite(site / "chip_facts.py"),
        lambda site, patch: rewrite(site / "other"),
    ),
    "whether a module is there": (
        "import importlib.util; found = importlib.util.find_spec('chip_more')",
        lambda site, patch: (site / "chip_more.py").touch(),
        lambda site, patch: (site / "chip_less.py").touch(),
    ),
    "a module that is not there": (
        "try: import chip_more\nexcept ImportError: pass",
        lambda site, patch: (site / "chip_more.py").touch(),
        lambda site, patch: (site / "chip_less.py").touch(),
    ),
    "its real path": (
        "found = os.path.realpath(__file__)",
        lambda site, patch: rewrite(site / "made_chip.py"),
        lambda site, patch: (site / "more").touch(),
    ),
    "nothing": (
        "pass",
        lambda site, patch: rewrite(site / "lib.so"),
        lambda site, patch: patch.setenv("CHIP_MODE", "2"),
    ),
}  # fmt: skip


@needs_jax
@pytest.mark.parametrize("what", READS)
def test_code_is_tried_again_where_what_it_read_has_changed(
    site: Path, runs: list[int], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, change, other = READS[what]
    monkeypatch.chdir(site)
    (site / "cards").mkdir()
    for name in ("facts", "other", "chip_facts.py"):
        (site / name).write_text("1")
    made_for_jax(site, f"SITE = {str(site)!r}\n{reads}\n{REGISTERS}", "lib.so")
    for expected in ([1], [1]):
        start(site)
        assert runs == expected
    other(site, monkeypatch)
    start(site)
    assert runs == [1]
    change(site, monkeypatch)
    for expected in ([1, 1], [1, 1]):
        start(site)
        assert runs == expected


@needs_jax
@pytest.mark.parametrize(
    "reads",
    [
        "dict(os.environ)",
        "os.environ.copy()",
        "open('/proc/self/status').read()",
        "os.path.exists('/sys/class')",
        "import subprocess; subprocess.run(['true'])",
        "os.system('true')",
        "import socket; socket.gethostname()",
        "import ctypes\ntry: ctypes.CDLL('libchip.so')\nexcept OSError: pass",
        "os.stat('.', dir_fd=os.open('/', os.O_RDONLY))",
    ],
)
def test_inputs_that_cannot_be_compared_are_tried_at_each_start(
    site: Path, runs: list[int], reads: str
) -> None:
    made_for_jax(site, f"{reads}\n{REGISTERS}")
    for expected in ([1], [1, 1]):
        start(site)
        assert runs == expected


@needs_jax
def test_code_that_runs_here_is_not_tried_again(site: Path, runs: list[int]) -> None:
    """It must run in each program."""
    options = REGISTERS[:-1] + ", options=lambda: {'a': len(os.environ.copy())})"
    made_for_jax(site, options)
    for expected in ([1, 1], [1, 1, 1]):
        start(site)
        assert runs == expected


@needs_jax
def test_code_that_fails_is_tried_again(site: Path, runs: list[int]) -> None:
    made_for_jax(site, "raise ValueError('no chip')", "lib.so")
    for expected in ([1], [1, 1]):
        start(site)
        assert runs == expected


@needs_jax
def test_no_value_of_a_variable_is_stored(
    site: Path, runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHIP_SECRET", "hush")
    monkeypatch.setenv("JAX_PLATFORMS", "chip")
    made_for_jax(site, f"os.environ['CHIP_SECRET']\n{REGISTERS}")
    start(site)
    stored = Path(cache_folder(), "trials.json").read_text()
    assert "CHIP_SECRET" in stored
    assert "hush" not in stored


def test_another_environment_with_links_to_jax_changes_nothing(site: Path) -> None:
    """uv makes hard links: earlier, each new environment made all code be tried again."""
    (site / "jax").mkdir()
    jax = site / "jax" / "__init__.py"
    jax.write_text("1")
    known = describe_jax()
    (site / "other_environment").hardlink_to(jax)
    assert describe_jax() == known
    rewrite(jax)
    assert describe_jax() != known
