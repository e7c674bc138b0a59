"""The examples in docstrings of public functions print the stated results."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

import plugrt
from plugrt import array_api, lax, random

NAMES = {"np": np, "xp": array_api, "lax": lax, "random": random, "plugrt": plugrt}
LEAST = {"plugrt": 16, "array_api": 40, "lax": 25, "random": 8}
"""The minimum numbers of examples: a search that finds none fails."""


def examples(namespace: ModuleType) -> Iterator[doctest.DocTest]:
    parser = doctest.DocTestParser()
    for name in namespace.__all__:
        text = getattr(getattr(namespace, name), "__doc__", None) or ""
        title = f"{namespace.__name__}.{name}"
        found = parser.get_doctest(text, dict(NAMES), title, None, 0)
        if found.examples:
            yield found


@pytest.mark.parametrize(
    "example",
    [e for namespace in (plugrt, array_api, lax, random) for e in examples(namespace)],
    ids=lambda e: e.name.removeprefix("plugrt."),
)
def test_examples_give_what_they_say(example: doctest.DocTest) -> None:
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("namespace", [plugrt, array_api, lax, random], ids=lambda m: m.__name__)
def test_there_are_examples(namespace: ModuleType) -> None:
    assert len(list(examples(namespace))) >= LEAST[namespace.__name__.rpartition(".")[2]]


WITHOUT = {
    "Array", "PyTreeSpec",  # classes
    "clear_backends",  # it closes the clients of the tests
    "Model", "load_model", "pack_model",  # they need a file: docs/serve-a-model.md has them
    "topology",  # needs libtpu: tests/vendors compiles for one
}  # fmt: skip


def test_every_other_top_level_function_has_one() -> None:
    callables = {name for name in plugrt.__all__ if callable(getattr(plugrt, name))}
    found = {example.name.removeprefix("plugrt.") for example in examples(plugrt)}
    assert callables - found == WITHOUT


def test_a_wrong_example_is_found() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    with pytest.raises(AssertionError, match="Expected"):
        test_examples_give_what_they_say(wrong)
