"""The stubs of public namespaces agree with the operations' signatures, at run time too."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import plugrt
from plugrt import Array, array_api, lax, random
from plugrt.array_api.indexing.at import IndexUpdateRef
from plugrt.array_api.methods import METHODS
from plugrt.execution.arrays import array_methods, array_operators
from plugrt.tracing.operation import Operation, operation
from plugrt.tracing.tracer import Tracer
from support.import_graph import PACKAGES
from support.markdown import load_script

ROOT = Path(__file__).parents[3]
NAMESPACES = (array_api, lax, random)


def generator(name: str = "stubs") -> ModuleType:
    return load_script(f"docs/generate/{name}.py")


@pytest.mark.parametrize("package", generator().PACKAGES)
def test_stubs_are_up_to_date(package: str) -> None:
    written = generator()
    text = written.place_of(package).read_text(encoding="utf-8")
    assert written.stub_of(package) == text, "run docs/generate/stubs.py (make docs)"


def test_the_settings_are_typed_as_they_are_declared() -> None:
    written = generator("typed_options")
    assert written.text() == written.PLACE.read_text(encoding="utf-8"), "run make docs"
    assert "nope" not in written.text()


def test_a_stub_is_made_of_an_operation_whatever_its_parameters_are_called() -> None:
    """In annotations, a name that both the namespace and builtins have is the builtin."""
    text = generator().Stub(array_api).text()
    assert "keepdims: builtins.bool = False" in text
    assert "Tracer" not in text


@pytest.mark.parametrize("namespace", NAMESPACES, ids=lambda m: m.__name__)
def test_no_public_function_speaks_of_tracers(namespace: ModuleType) -> None:
    functions = {n: getattr(namespace, n) for n in namespace.__all__}
    checked = [n for n, f in functions.items() if callable(f) and not isinstance(f, type)]
    found = {n: str(inspect.signature(functions[n])) for n in checked}
    assert len(found) > 20
    assert {n: s for n, s in found.items() if "Tracer" in s} == {}


def test_help_shows_what_callers_pass_and_get() -> None:
    # Python 3.13 breaks long signatures into lines.
    shown = " ".join(pydoc.plain(pydoc.render_doc(array_api.sum)).split()).replace("( ", "(")
    assert "sum(x: 'ArrayLike', /, axis: 'Axes' = None" in shown
    assert "-> 'Array'" in shown
    assert "Returns the sum over" in shown


def test_help_of_jit_shows_a_function_and_what_comes_of_it() -> None:
    shown = " ".join(pydoc.plain(pydoc.render_doc(plugrt.jit)).split())
    assert "<object object at" not in shown
    assert "fun: 'Callable[P, R] | _Omitted' = OMITTED" in shown
    assert "-> 'JitFunction[P, R]" in shown


def test_an_operation_with_overloads_has_each_of_them_in_the_stub() -> None:
    text = generator().Stub(lax).text()
    assert text.count("def sort(") == text.count("@overload") == 2


def test_signatures_name_arrays_inside_of_containers() -> None:
    @operation
    def body(arrays: list[Tracer], x: Tracer | None = None) -> tuple[Tracer, ...]:
        return tuple(arrays)

    assert str(inspect.signature(body)) == (
        "(arrays: 'list[ArrayLike]', x: 'ArrayLike | None' = None) -> 'tuple[Array, ...]'"
    )


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    inner = inspect.unwrap(
        function, stop=lambda f: f.__wrapped__ in array_methods.DECLARED.values()
    )
    signature = inspect.signature(inner, follow_wrapped=False)
    return [(p.name, p.kind, p.default) for p in signature.parameters.values()]


@pytest.mark.parametrize("name", sorted(array_methods.DECLARED))
def test_methods_are_implemented_as_they_are_declared(name: str) -> None:
    declared, given = (
        array_methods.DECLARED[name],
        inspect.getattr_static(array_methods.Methods, name),
    )
    if isinstance(declared, property):
        assert isinstance(given, property)
        return
    assert inspect.signature(given) == inspect.signature(declared)  # help() shows it
    if name in METHODS and name not in ("sort", "argsort", "reshape"):  # these pass options on
        assert parameters(METHODS[name])[1:] == parameters(declared)[1:]


@pytest.mark.parametrize("name", ["set", "add", "subtract", "multiply", "divide", "power", "min"])
def test_updates_are_implemented_as_they_are_declared(name: str) -> None:
    given = parameters(getattr(IndexUpdateRef, name))
    assert given == parameters(array_operators.UpdateMethod.__call__)


def test_help_of_methods_shows_types() -> None:
    assert "axis: 'Axes' = None" in pydoc.plain(pydoc.render_doc(Array.sum))
    assert isinstance(array_api.sum, Operation)


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda p: p.name)
def test_each_distribution_says_that_it_is_typed(folder: Path) -> None:
    assert (folder / "py.typed").exists()


def test_the_types_of_jax_are_there_under_their_names() -> None:
    assert {"ArrayLike", "DTypeLike"} <= set(plugrt.typing.__all__)
