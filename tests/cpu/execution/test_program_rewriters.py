"""Program rewriters, of users and of packages, which get each program before it is compiled."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import config, jit, pmap
from plugrt.errors import ArgumentTypeError, ConfigError, ProgramError
from plugrt.interface import Client, Program
from plugrt.stablehlo.modules import parse
from support.behaviour import behaviour
from support.distributions import install, run_warm
from support.platforms import platform_environment

X = np.arange(3, dtype=np.float32)


def text_of(program: Program) -> str:
    return str(parse(program.code, program.name))


def sines(program: Program, client: Client) -> str | None:
    """Replaces cosines by sines."""
    text = text_of(program)
    return text.replace("stablehlo.cosine", "stablehlo.sine") if "cosine" in text else None


def cosine(x: Any) -> Any:
    return xp.cos(x)


@behaviour(
    12,
    "a registered function replaces a program before it is compiled, and caches keep both apart",
    jax="JAX had this for outfeeds alone, and internally",
)
def test_calls_with_and_without() -> None:
    for _ in range(2):
        np.testing.assert_allclose(jit(cosine)(X), np.cos(X), rtol=1e-6)
        with config.override(program_rewriters=(sines,)):
            np.testing.assert_allclose(jit(cosine)(X), np.sin(X), rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(xp.cos(plugrt.device_put(X)), np.sin(X), rtol=1e-6)
            np.testing.assert_allclose(pmap(cosine)(X[None])[0], np.sin(X), rtol=1e-6)
            np.testing.assert_allclose(jit(cosine).lower(X).compile()(X), np.sin(X), rtol=1e-6)
            program = jit(cosine).lower(X).as_text()
            np.testing.assert_allclose(plugrt.compile(program)(X), np.sin(X), rtol=1e-6)
        np.testing.assert_allclose(xp.cos(plugrt.device_put(X)), np.cos(X), rtol=1e-6)


@behaviour(
    12, "the persistent cache has an entry for each result of the rewriters", jax="JAX has none"
)
def test_the_persistent_cache(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"compilation_cache_dir": str(tmp_path / "cache"),
                                "persistent_cache_min_compile_time_secs": 0}  # fmt: skip
    with config.override(**settings):
        for rewriters, expected in [((), np.cos), ((sines,), np.sin), ((), np.cos)] * 2:
            with config.override(program_rewriters=rewriters):
                found = jit(lambda x: xp.cos(x) + 48)(X)
            np.testing.assert_allclose(found, expected(X) + 48, rtol=1e-6)


@behaviour(
    12, "several are called in turn, each with the program and the client", jax="JAX has none"
)
def test_several_in_turn() -> None:
    seen: list[Any] = []

    def look(program: Program, client: Client) -> None:
        seen.append(("stablehlo.sine" in text_of(program), client))

    with config.override(program_rewriters=(look, sines, look)):
        jit(lambda x: xp.cos(x) + 49)(X)
    client = plugrt.get_backend()
    assert seen == [(False, client), (True, client)]


def test_a_program_object_and_bytes() -> None:
    def doubled(as_what: Any) -> Any:
        def rewrite(program: Program, client: Client) -> Any:
            return as_what(text_of(program).replace("stablehlo.add", "stablehlo.multiply"))

        return rewrite

    for as_what in (str, str.encode, lambda text: Program(text.encode(), "mlir", "other")):
        with config.override(program_rewriters=(doubled(as_what),)):
            np.testing.assert_array_equal(jit(lambda x: x + x + x)(X), X * X * X)


@behaviour(
    12,
    "Python functions that a program calls are also called by its replacement",
    jax="JAX has none",
)
def test_callbacks_of_a_rewritten_program() -> None:
    client = plugrt.get_backend()
    if not client.capabilities.host_callbacks:
        pytest.skip(f"no callbacks in programs of {client.platform} here")

    def in_another(program: Program, client: Client) -> Program:
        return Program(sines_of(program), "mlir", "other")

    def as_text(program: Program, client: Client) -> bytes:
        return sines_of(program)

    def sines_of(program: Program) -> bytes:
        return text_of(program).replace("stablehlo.cosine", "stablehlo.sine").encode()

    kind = plugrt.ShapeDtypeStruct(X.shape, X.dtype)
    for function, rewriter in ((np.negative, in_another), (np.square, as_text)):
        with config.override(program_rewriters=(rewriter,)):
            found = jit(lambda x, f=function: plugrt.pure_callback(f, kind, xp.cos(x)))(X)
        np.testing.assert_allclose(found, function(np.sin(X)), rtol=1e-6)


@behaviour(
    12,
    "what a rewriter raises, or returns wrongly, names the rewriter and the program",
    jax="JAX has none",
)
def test_faults_of_rewriters() -> None:
    def raising(program: Program, client: Client) -> None:
        raise KeyError("lost")

    def wrong(program: Program, client: Client) -> Any:
        return 3

    def retyped(program: Program, client: Client) -> str:
        return text_of(program).replace("3xf32", "4xf32")

    def broken(program: Program, client: Client) -> str:
        return "module {"

    def named(x: Any) -> Any:
        return x + 50

    for rewriter, error, says in (
        (raising, ProgramError, r"raising raised KeyError for 'named': 'lost'"),
        (wrong, ArgumentTypeError, r"wrong returned 3 for 'named'; it returns a Program"),
        (retyped, ProgramError, r"retyped made .*tensor<4xf32>.* of 'named', whose type is"),
        (broken, ProgramError, r"broken returned for 'named' what is no StableHLO: named:1:"),
    ):
        with config.override(program_rewriters=(rewriter,)), pytest.raises(error, match=says):
            jit(named)(X)


@pytest.mark.parametrize(
    "wrong",
    [sines, "nowhere:f", "math", (3,), 4],
    ids=["one function", "no module", "no function", "numbers", "number"],
)
def test_wrong_program_rewriters_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="program_rewriters"):
        config.update("program_rewriters", wrong)


PACKAGE = """
    from plugrt.plugins import hookimpl
    from plugrt.stablehlo.modules import parse

    def sines(program, client):
        text = str(parse(program.code, program.name))
        return text.replace("stablehlo.cosine", "stablehlo.sine")

    @hookimpl
    def plugrt_program_rewriters():
        return [sines]
"""
CHILD = """
import numpy as np, plugrt
from plugrt import array_api as xp
print(np.asarray(plugrt.jit(lambda x: xp.cos(x))(np.zeros(2, np.float32))).tolist())
"""


@behaviour(
    12,
    "a package offers them by a hook and an entry point; one that fails is left out",
    jax="JAX has none",
)
def test_rewriters_of_packages(tmp_path: Path) -> None:
    entry = {"plugrt.rewriters": {"sines": "sines_module"}}
    install(tmp_path / "good", "sines-dist", entry, {"sines_module": PACKAGE})
    sick = textwrap.dedent(PACKAGE).replace("return [sines]", "return 1 / 0")
    install(tmp_path / "sick", "sines-dist", entry, {"sines_module": sick})
    env = platform_environment()
    for folder, printed, warned in (
        ("good", "[0.0, 0.0]", ""),
        ("sick", "[1.0, 1.0]", "program rewriters of sines-dist 1.0 are left out"),
    ):
        done = run_warm(CHILD, tmp_path / folder, **env)
        assert done.stdout.strip() == printed, done.stderr
        assert warned in done.stderr


def test_rewriters_named_in_the_environment() -> None:
    name = Path(__file__).stem
    env = {**platform_environment(), "PLUGRT_PROGRAM_REWRITERS": f"{name}:sines"}
    done = run_warm(CHILD, Path(__file__).parent, **env)
    assert done.stdout.strip() == "[0.0, 0.0]", done.stderr
