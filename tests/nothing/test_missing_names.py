"""The error for a name of JAX's that plugrt lacks states the reason and a replacement.

Differs from JAX: `grad`, `vmap`, `custom_jvp`, … | yes | no; the error says how to run what JAX has
transformed, `from_jax`.
"""

from __future__ import annotations

import importlib
import re

import pytest

import plugrt
from plugrt import missing_names
from support.distributions import run_python


def said(name: str) -> str:
    with pytest.raises(
        AttributeError, match=f"module 'plugrt' has no attribute '{name}'"
    ) as caught:
        getattr(plugrt, name)
    return str(caught.value)


@pytest.mark.parametrize("name", ["grad", "vmap", "value_and_grad", "jvp", "hessian"])
def test_transforms_are_taken_with_jax(name: str) -> None:
    assert f"plugrt.from_jax(jax.{name}(f))(x)" in said(name)


@pytest.mark.parametrize("name", missing_names.INSTEAD)
def test_replacements_of_missing_names_exist(name: str) -> None:
    assert name not in plugrt.__all__, "plugrt has the name now: remove the row"
    _, words = said(name).split("': ", 1)
    for path in re.findall(r"plugrt((?:\.\w+)+)", words):
        value: object = plugrt
        for part in path[1:].split("."):
            value = getattr(value, part)


def test_suggestions_of_missing_names_run() -> None:
    assert "plugrt.from_jax(jax.grad(f))" in said("grad")
    assert "plugrt.from_jax(jax.grad(f))" in said("custom_vjp")
    done = run_python(
        """
        import jax, numpy, plugrt
        print(plugrt.from_jax(jax.grad(lambda x: x**3))(numpy.float32(2)))
        """,
        JAX_PLATFORMS="cpu",
    )
    assert done.stdout == "12.0\n", done.stderr


@pytest.mark.parametrize(("code", "meant"), [
    ("import plugrt; plugrt.device_putt", "device_put"),
    ("from plugrt import array_api; array_api.linspac", "linspace"),
])  # fmt: skip
def test_a_slip_of_the_pen_gets_pythons_suggestion(code: str, meant: str) -> None:
    assert f"Did you mean: '{meant}'?" in run_python(code).stderr


def _publics(module: str) -> list[str]:
    found = importlib.import_module(module)
    return [name for name in getattr(found, "__all__", dir(found)) if not name.startswith("_")]


@pytest.mark.parametrize("home", ["layout", "memory", "sharding"])
def test_a_name_of_a_module_is_looked_for_at_the_top(home: str) -> None:
    """Earlier, `PartitionSpec` was not found, beside `NamedSharding` and `Mesh`."""
    for name in _publics(f"plugrt.{home}"):
        if not hasattr(plugrt, name):
            assert re.search(rf"it is plugrt\.\w+\.{name}$", said(name)), name


def test_each_sampler_of_jax_is_there() -> None:
    """Earlier, `gamma`, `poisson`, `beta`, `dirichlet`, `t` were missing without a message."""
    pytest.importorskip("jax")
    absent = [name for name in _publics("jax.random") if not hasattr(plugrt.random, name)]
    assert [name for name in absent if not name.endswith("_p")] == []  # ``_p``: primitives
