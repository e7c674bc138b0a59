"""Functions of JAX's, transformed by it, give under `from_jax` what they give under JAX."""

from __future__ import annotations

import os
import sys

from support import as_jax, children
from support.behaviour import behaviour
from support.effort import EFFORT


@behaviour(20, "after `jax.grad`, `vjp`, `jvp`, `vmap`, `checkpoint`, custom rules, with control "
           "flow and random numbers, values are JAX's, and it starts no backend")  # fmt: skip
def test_random_functions_give_what_jax_gives() -> None:
    command = [sys.executable, as_jax.__file__, str(2 * EFFORT), "20"]
    done = children.run(command, env={**os.environ}, timeout=240)
    lines = done.stdout.splitlines()
    assert lines[0] == "backends False", done.stderr
    assert len(lines) == 4 + 2 * EFFORT
    assert [line for line in lines[1:] if not line.endswith("| same")] == []
