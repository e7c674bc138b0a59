"""docs/plugins.md names every source and state, docs/extending.md every hook."""

from __future__ import annotations

from pathlib import Path

from plugrt.plugins import hookspecs
from plugrt.plugins.discovery.installed_plugins import HOOK_GROUPS
from plugrt.plugins.record import Source, State
from support.markdown import load_script

WHEELS = load_script("docs/generate/wheels.py")
STUBBED = load_script("docs/generate/stubbed_functions.py")
DOCS = Path(__file__).parents[3] / "docs"


def test_sources_and_states_have_a_row_each() -> None:
    page = (DOCS / "plugins.md").read_text(encoding="utf-8")
    for word in (*Source, *State):
        assert f"\n| `{word}` |" in page, word


def test_hooks_have_a_row_each_with_their_group() -> None:
    page = (DOCS / "extending.md").read_text(encoding="utf-8")
    groups = {hook: group for group, hook in HOOK_GROUPS.items()}
    for hook in (name for name in dir(hookspecs) if name.startswith("plugrt_")):
        assert f"\n| `{hook}` | `{groups.get(hook, 'plugrt.plugins')}` |" in page, hook


def test_the_table_of_wheels_is_current() -> None:
    page = (DOCS / "plugins.md").read_text(encoding="utf-8")
    assert WHEELS.page(page) == page, "run `make docs`"
    assert {wheel.get("state", "") for wheel in WHEELS.read()} - {"", "not announced"} < {*State}


def test_the_table_of_functions_is_current() -> None:
    page = (DOCS / "plugins.md").read_text(encoding="utf-8")
    assert STUBBED.page(page) == page, "run `make docs`"
    found = STUBBED.read()
    ours = {*found["plugrt"]["essential"], *found["plugrt"]["otherwise"]}
    assert {*found["outcomes"], *found["newer"]["outcomes"]} >= ours
    assert (len(found["outcomes"]), len(found["newer"]["outcomes"])) == (118 + 14, 20 + 3)


def test_plugrt_works_without_functions_that_jax_does_without() -> None:
    """Compares recorded outcomes; the session `stubbed` compares the steps themselves."""
    found = STUBBED.read()
    for name, jax in (found["outcomes"] | found["newer"]["outcomes"]).items():
        for how, failing in jax.items():
            ends = failing == "the process ends"
            if name in found["plugrt"]["essential"]:
                assert failing, f"JAX runs all without {name} ({how})"
            for step in found["plugrt"]["otherwise"].get(name, ()):
                assert ends or step in failing, f"{step} works in JAX without {name} ({how})"
