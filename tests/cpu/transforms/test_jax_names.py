"""Names of ``jax`` that ``plugrt`` lacks: each error states a replacement, or the reason."""

from __future__ import annotations

import plugrt
from plugrt.missing_names import missing_name
from support.jax_oracle import jax


def test_each_public_name_of_jax_is_here_or_there_is_a_word_about_it() -> None:
    # ``import jax`` does not import jax.extend, which another test may have imported.
    public = [name for name in dir(jax) if not name.startswith("_") and name != "extend"]
    assert len(public) > 100
    silent = [
        name
        for name in public
        if not hasattr(plugrt, name) and not missing_name(name).partition("': ")[2]
    ]
    assert silent == []
