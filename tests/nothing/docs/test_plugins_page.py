"""docs/plugins.md names every source, state and hook that there is."""

from __future__ import annotations

from pathlib import Path

from plugrt.plugins import hookspecs
from plugrt.plugins.record import Source, State

PAGE = (Path(__file__).parents[3] / "docs/plugins.md").read_text(encoding="utf-8")


def test_sources_states_and_hooks_have_a_row_each() -> None:
    hooks = [name for name in dir(hookspecs) if name.startswith("plugrt_")]
    for word in (*Source, *State, *hooks):
        assert f"\n| `{word}` |" in PAGE, word
