"""The names and parameters of the JAX that plugrt follows, recorded in ``jax_names.json``.

That file states the version; the installed JAX may be older or newer. To follow another one, run
``PYTHONPATH=tests python -m cpu.lax.jax_names`` with it installed.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

FILE = Path(__file__).with_suffix(".json")
RECORD: dict[str, Any] = json.loads(FILE.read_text())
VERSION: str = RECORD["version"]
"""The version of JAX whose names and parameters, in their order, plugrt has."""


def names_of(module: ModuleType) -> dict[str, list[str] | None]:
    """Returns each public function's parameters in order; None for a class or type alias."""
    public = {n: getattr(module, n) for n in sorted(vars(module)) if not n.startswith("_")}
    return {
        name: None if _is_type(value) else list(inspect.signature(value).parameters)
        for name, value in public.items()
        if callable(value)
    }


def _is_type(value: Any) -> bool:
    return isinstance(value, type) or get_origin(value) is not None


def installed_names() -> dict[str, Any]:
    """Returns the contents of the file for the installed JAX."""
    import jax

    modules = {"lax": jax.lax, "random": jax.random}
    return {"version": jax.__version__, **{n: names_of(m) for n, m in modules.items()}}


if __name__ == "__main__":
    rows = json.dumps(installed_names()).replace('], "', '],\n"').replace(': {"', ': {\n"')
    FILE.write_text(rows.replace('null, "', 'null,\n"') + "\n")
