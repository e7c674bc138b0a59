"""`Table.find`: the meaning of a name, and the candidates after exclusion by settings and other
rows.

Differs from JAX: which plugin wins without `JAX_PLATFORMS` | priority; each is imported | priority
among plugins made for plugrt; those made for JAX by name only.
"""

from __future__ import annotations

import pytest

from plugrt.errors import DuplicatePlugin, UnknownPlatform
from plugrt.plugins import Record
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.selection.platform_choice import parse_request
from support import registries
from support.registries import settings


def record(name: str, source: str = "plugrt.plugins", distribution: str = "") -> Record:
    return registries.record(name, source, distribution or f"{name}-dist", "1.0")


@pytest.mark.parametrize(
    ("platforms", "platform_name", "names", "exclusive"),
    [
        (None, None, (), False),
        ("", "", (), False),
        (" , ", None, (), False),
        ("cpu", None, ("cpu",), True),
        (" cuda , cpu,cuda,", None, ("cuda", "cpu"), True),
        (None, "cuda", ("cuda",), False),
        ("cpu", "cuda", ("cpu",), True),
    ],
)
def test_parse_request(
    platforms: str | None, platform_name: str | None, names: tuple[str, ...], exclusive: bool
) -> None:
    request = parse_request(platforms, platform_name)
    assert (request.names, request.exclusive) == (names, exclusive)


def table(*rows: Record, **environ: str) -> Table:
    made = Table(settings(**environ), path=[])
    assert made.rows == []
    for row in rows:
        row.reset()
        made.add(row)
    return made


def candidates(name: str, *rows: Record, **environ: str) -> list[Record]:
    return table(*rows, **environ).find(name, "asked")


def test_an_alias_reaches_plugins_made_for_jax() -> None:
    jax = registries.record("xla_cuda12", "jax_plugins", aliases=("cuda", "cuda12"))
    assert candidates("gpu", jax) == [jax]
    assert candidates("cuda", jax) == [jax]
    ours = record("cuda")
    assert candidates("cuda", jax, ours) == [ours]


def test_a_plugin_named_as_an_alias_wins() -> None:
    gpu, cuda = record("gpu"), record("cuda")
    assert candidates("gpu", gpu, cuda) == [gpu]


@pytest.mark.parametrize(
    ("asked", "suggestion"),
    [("cpuu", "did you mean 'cpu'?"), ("CPU", "did you mean 'cpu'?"),
     ("gpuu", "did you mean 'gpu'"),
     ("cuda", 'pip install "plugrt[cuda12]"'), ("zzz", "choose among those installed")],
)  # fmt: skip
def test_unknown_names_get_a_suggestion(asked: str, suggestion: str) -> None:
    with pytest.raises(UnknownPlatform) as error:
        candidates(asked, record("cpu"), record("mychip"))
    message = str(error.value)
    assert suggestion in message
    assert repr(asked) in message
    assert "installed: cpu, mychip" in message


def test_two_distributions_of_one_name_conflict_only_when_asked_for() -> None:
    one, two, cpu = record("x", distribution="one"), record("x", distribution="two"), record("cpu")
    assert candidates("cpu", one, two, cpu) == [cpu]
    with pytest.raises(DuplicatePlugin) as error:
        candidates("x", one, two, cpu)
    for fact in ("one 1.0", "two 1.0", "JAX_PLATFORMS=x@one", "PLUGRT_PLUGINS_BLOCK=two"):
        assert fact in str(error.value)
    assert candidates("x@two", one, two, cpu) == [two]
    assert {one.state, two.state} == {"duplicate"}


def test_blocking_one_of_two_resolves_the_conflict() -> None:
    one, two = record("x", distribution="one"), record("x", distribution="two")
    assert candidates("x", one, two, PLUGRT_PLUGINS_BLOCK="Two") == [one]
    assert two.state == "not selected"
    assert "PLUGRT_PLUGINS_BLOCK" in two.reason


def test_sources_take_precedence_in_order() -> None:
    sources = ("registered", "environment", "plugrt.plugins", "jax_plugins")
    in_order = [record("x", source, f"d{i}") for i, source in enumerate(sources)]
    assert candidates("x", *reversed(in_order)) == [in_order[0]]
    assert [r.state for r in in_order] == ["found", *["duplicate"] * 3]
    assert "hidden by d0" in in_order[3].reason
    assert not any(row.rivalled for row in in_order)


def test_the_first_of_two_entry_points_of_a_package_is_used() -> None:
    """For example, ``xla_x`` and ``x_plugin`` both mean the name ``x``."""
    jax, xla = record("x", "jax_plugins", "d"), record("x", "xla_plugins", "d")
    assert candidates("x", jax, xla) == [jax]


def test_automatic_leaves_out_what_cannot_be_chosen() -> None:
    good, blocked, twice = record("a"), record("b"), [record("c", distribution=d) for d in "pq"]
    sick = registries.record("item 1", "environment", named=False)
    made = table(good, blocked, *twice, sick, PLUGRT_PLUGINS_BLOCK="b")
    assert [row for row in made.rows if row.is_eligible] == [good]
