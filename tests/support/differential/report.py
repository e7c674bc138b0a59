"""`report`: the smallest case found for a difference, as runnable text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from support.differential.case import Arg, Case
from support.differential.compare import Difference, compare
from support.differential.deviations import unknown
from support.differential.outcome import run
from support.differential.script import program

MOST_TRIES = 60


def differences_of(case: Case) -> list[Difference]:
    """Returns the differences between plugrt and JAX in a case."""
    return compare(run(case, ours=True), run(case, ours=False))


def smaller(case: Case) -> Iterator[Case]:
    """Yields cases that are simpler by one thing."""
    for name in ("then", "again", "setting", "aot", "transform", "x64"):
        default = type(getattr(case, name))()
        if getattr(case, name) != default:
            yield replace(case, **{name: default})
    for i in range(len(case.options)):
        yield replace(case, options=case.options[:i] + case.options[i + 1 :])
    for i, arg in enumerate(case.args):
        simpler = [replace(arg, place=None), replace(arg, kind="array"), replace(arg, seed=1)]
        if arg.kind in ("array", "numpy"):
            simpler += [replace(arg, dtype="float32"), replace(arg, shape=arg.shape[:1])]
        for one in simpler:
            if one != arg and not (one.kind == "array" and arg.kind == "python"):
                yield replace(case, args=_with(case.args, i, one))


def _with(args: tuple[Arg, ...], i: int, arg: Arg) -> tuple[Arg, ...]:
    return (*args[:i], arg, *args[i + 1 :])


def shrink(case: Case) -> Case:
    """Returns a simpler case with a difference of the same kind that no entry covers."""
    kinds = {d.what for d in unknown(case, differences_of(case))}
    tries, tried = 0, {case}
    progress = True
    while progress:
        progress = False
        for candidate in smaller(case):
            if candidate in tried or tries >= MOST_TRIES:
                continue
            tried.add(candidate)
            tries += 1
            if kinds & {d.what for d in unknown(candidate, differences_of(candidate))}:
                case, progress = candidate, True
                break
    return case


def report(case: Case) -> str:
    """Returns the differences in the simplest case of the kind, and the programs of both sides."""
    small = shrink(case)
    lines = "\n".join(f"  {d}" for d in unknown(small, differences_of(small)))
    return (
        f"plugrt and JAX differ, and no entry of docs/data/jax_deviations.toml says so:\n{lines}\n"
        f"{small!r}\nfound as\n{case!r}\n\n# plugrt\n{program(small, ours=True)}\n# JAX\n"
        f"{program(small, ours=False)}"
    )
