"""Names of ``jax`` that ``plugrt`` lacks: each error states a replacement, or the reason."""

from __future__ import annotations

from types import ModuleType

import plugrt
from support.jax_oracle import jax


def test_each_public_name_of_jax_is_here_or_there_is_a_word_about_it() -> None:
    # ``import jax`` does not import jax.extend, which another test may have imported.
    public = [name for name in dir(jax) if not name.startswith("_") and name != "extend"]
    assert len(public) > 100
    assert [name for name in public if is_silent(plugrt, name)] == []


def test_each_public_name_of_jax_sharding_is_here_or_there_is_a_word_about_it() -> None:
    public = [name for name in dir(jax.sharding) if not name.startswith("_")]
    assert "AbstractDevice" in public
    assert [name for name in public if is_silent(plugrt.sharding, name)] == []


def is_silent(module: ModuleType, name: str) -> bool:
    try:
        getattr(module, name)
    except AttributeError as error:
        return not str(error).partition("': ")[2]
    return False
