"""For each missing NumPy name the error suggests code, and that code computes the same.

Differs from JAX: array functions | `jax.numpy`, NumPy's names | `plugrt.array_api`, the array API
standard's names, and NumPy's most used ones; another gets an error that says what to write.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.array_api import missing_names
from support.requirements import needs_jax

X, Y = np.float32([[1, 2], [3, 5]]), np.float32([[1, 2.5], [-3, 2]])
V, W = np.float32([4, -1]), np.float32([2, 7])
OF_TWO = ["array_equal", "divmod", "fmod", "inner", "vdot"]
OTHERWISE: dict[str, Any] = {
    "append": lambda: np.append(X, Y, axis=0),
    "average": lambda: np.average(X, weights=Y),
    "cov": lambda: np.cov(X),
    "identity": lambda: np.identity(2),
    "vsplit": lambda: np.vsplit(X, 2),
}


def said(name: str) -> str:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
        getattr(xp, name)
    return str(caught.value)


@pytest.mark.parametrize("name", missing_names.WRITTEN)
def test_suggested_replacements_compute_as_numpy(name: str) -> None:
    _, found, expression = said(name).partition("write, for example, ")
    assert found
    scope = {"x": X, "y": Y, "v": V, "w": W}
    arrays = {key: xp.asarray(value) for key, value in scope.items()}
    result = eval(expression, {"xp": xp, "lax": lax, "np": np, "n": 2, **arrays})
    numpy = OTHERWISE.get(name) or (lambda: getattr(np, name)(*([X, Y] if name in OF_TWO else [X])))
    parts, expected = (
        v if isinstance(v, tuple | list) and name != "shape" else [v] for v in (result, numpy())
    )
    for part, value in zip(parts, expected, strict=True):
        np.testing.assert_allclose(np.asarray(part), np.asarray(value), rtol=1e-5)


@pytest.mark.parametrize("name", missing_names.RENAMED)
def test_a_name_that_the_standard_spells_otherwise(name: str) -> None:
    assert callable(getattr(np, name))
    standard = missing_names.RENAMED[name]
    assert said(name).endswith(f"this is {standard!r}")
    assert standard in xp.__all__


def test_every_other_function_of_numpy_is_pointed_to_the_host() -> None:
    functions = [n for n in dir(np) if n[0] != "_" and callable(getattr(np, n))]
    lacking = [n for n in functions if not hasattr(xp, n)]
    assert len(lacking) > 200
    assert [n for n in lacking if not any(w in said(n) for w in ("write", "this is"))] == []


@pytest.mark.parametrize("name", ["heaviside", "isin", "nanmean", "busday_count"])
def test_suggestions_name_the_host_only_if_needed(name: str) -> None:
    assert ("host" in said(name)) == (name == "busday_count")


@needs_jax
def test_functions_of_jax_nn_are_pointed_to_jax() -> None:
    import jax

    _, _, expression = said("nn").partition("or use ")
    function = eval(expression, {"plugrt": plugrt, "jax": jax})
    np.testing.assert_allclose(np.asarray(function(X)), jax.nn.gelu(X), rtol=1e-5)


def test_other_names_are_just_missing() -> None:
    assert said("no_such_name") == "module 'plugrt.array_api' has no attribute 'no_such_name'"
    assert not hasattr(xp, "__path_of_nothing__")
