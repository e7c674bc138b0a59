"""``plugrt run``: runs a program or a model on a device, with files of arrays in and out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from plugrt.cli.inputs import READABLE_MODEL, NamedFile, read_arrays, read_program_argument
from plugrt.cli.output import get_width, json_option, print_json, print_line
from plugrt.cli.streams import keep_stdout
from plugrt.cli.usage import complete_plugin, usage_errors
from plugrt.errors import ArgumentMismatch, ProgramError, UnknownPlatform

_LARGE = 1 << 30
"""The bytes above which a step is announced."""


@click.command(
    "run", short_help="Compile and run a program of StableHLO or HLO, a JAX export, or a model."
)
@click.argument("file", type=READABLE_MODEL)
@click.option(
    "--input", "inputs", multiple=True, metavar="[NAME=]FILE", type=NamedFile(),
    help="The next parameter, or the model's input of that name: .npy, .npz or .safetensors.",
)  # fmt: skip
@click.option(
    "--output-dir", type=click.Path(file_okay=False, path_type=Path),
    help="A folder to write the results into, as output_0.npy and so on, or by their names.",
)  # fmt: skip
@click.option(
    "--platform", shell_complete=complete_plugin,
    help="The backend to run on; the default one otherwise.",
)  # fmt: skip
@json_option
def command(
    file: Path,
    inputs: tuple[tuple[str, Path], ...],
    output_dir: Path | None,
    platform: str | None,
    as_json: bool,
) -> None:
    """Compile and run FILE: StableHLO text or bytecode, a portable artifact, HLO, or a JAX export.

    A file of `plugrt compile -o` or serialize() is run without compiling. FILE may be - for
    standard input, and so may one of the inputs instead. FILE may also be a model of `plugrt pack`.
    """
    if [str(path) for path in (file, *(path for _, path in inputs))].count("-") > 1:
        raise click.UsageError("standard input can be read once: - was given twice")
    keep_stdout()
    import plugrt
    from plugrt.models.model_file import is_model
    from plugrt.plugins.selection.backends import process_backends

    arrays = [each for name, path in inputs for each in _choose(name, path, read_arrays(path))]
    say_progress("putting inputs", [array for _, array in arrays])
    start = time.perf_counter()
    if platform is not None:
        with usage_errors(UnknownPlatform):
            process_backends().get(platform, f"--platform {platform}")  # named in its errors
    prepare = _prepare_model if is_model(file) else _prepare_program
    title, program, run = prepare(file, arrays, platform)
    compiled = time.perf_counter()
    try:
        named = run()
    except ArgumentMismatch as error:
        raise click.UsageError(str(error)) from error
    outputs = [*named.values()]
    plugrt.block_until_ready(outputs)
    finished = time.perf_counter()
    say_progress("reading outputs", outputs)
    written = _write(named, output_dir) if output_dir is not None else []
    facts: dict[str, object] = {
        "program": title,
        "backend": platform or process_backends().initialise().names[0],
        "device": repr(program.device),
        "compile_seconds": compiled - start,
        "run_seconds": finished - compiled,
        "outputs": [
            {"name": name, "shape": list(o.shape), "dtype": o.dtype.name, "value": _value(o)}
            for name, o in named.items()
        ],
        "written": written,
    }
    if as_json:
        print_json(facts)
    else:
        _show(f"{program!r}", facts, named)


def _choose(name: str, path: Path, arrays: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Returns the arrays of a file by name; with ``name`` its only array, or the one so named."""
    if not name:
        return arrays.items()
    if name in arrays:
        return [(name, arrays[name])]
    if len(arrays) != 1:
        raise click.UsageError(
            f"{path} has the arrays {[*arrays]!s:.300} and none named {name!r}; without "
            f"{name}=, the file's own names are used"
        )
    return [(name, next(iter(arrays.values())))]


Run = Callable[[], Mapping[str, Any]]
"""Makes the call, and returns the results by name."""


def _prepare_program(
    file: Path, arrays: Sequence[tuple[str, Any]], platform: str | None
) -> tuple[str, Any, Run]:
    """Returns the name of a program, the program compiled, and its call."""
    import plugrt
    from plugrt.programs.compiled_program import compile

    with usage_errors(ProgramError):
        given = plugrt.load_program(read_program_argument(file))
    program = compile(given, backend=platform)

    def run() -> Mapping[str, Any]:
        try:
            outputs = program.call_flat([array for _, array in arrays])
        except ArgumentMismatch as error:
            cure = f"each parameter is an --input FILE.npy, in order; there are {len(arrays)}"
            raise click.UsageError(f"{error}; {cure}") from error
        return {f"output_{i}": output for i, output in enumerate(outputs)}

    return given.name, program, run


def _prepare_model(
    file: Path, arrays: Sequence[tuple[str, Any]], platform: str | None
) -> tuple[str, Any, Run]:
    """Does the same as `_prepare_program` for a model."""
    import plugrt

    model = plugrt.load_model(file, backend=platform)
    if not all(name for name, _ in arrays) or len(dict(arrays)) < len(arrays):
        raise click.UsageError(
            f"a model has its inputs by name, each once: --input NAME=FILE of {model.inputs}"
        )

    def run() -> Mapping[str, Any]:
        found = model(**dict(arrays))
        return found if isinstance(found, dict) else {model.returned[0]: found}

    return model.name, model, run


def say_progress(step: str, arrays: Sequence[Any]) -> None:
    """Prints a line on a terminal before a step that moves more than 1 GiB."""
    count = sum(array.nbytes for array in arrays)
    if count > _LARGE and sys.stderr.isatty():
        print_line(f"{step}: {count / _LARGE:.1f} GiB", err=True)


def _write(outputs: Mapping[str, object], folder: Path) -> list[str]:
    """Writes a NumPy file for each result, such as ``output_0.npy``; returns their paths."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name.replace('/', '_')}.npy" for name in outputs]
    for path, output in zip(paths, outputs.values(), strict=True):
        np.save(path, np.asarray(output))
    return [str(path) for path in paths]


def _show(program: str, facts: dict[str, Any], outputs: Mapping[str, Any]) -> None:
    """Prints the results and the times of a run as text."""
    import numpy as np

    print_line(
        f"{program}\non backend {facts['backend']!r}, "
        f"compiled in {facts['compile_seconds']:.3f} s, ran in {facts['run_seconds'] * 1e3:.2f} ms"
    )
    for name, output in outputs.items():
        print_line(f"{name.replace('output_', 'output ')}: {output.dtype.name}{list(output.shape)}")
        with np.printoptions(linewidth=min(75, get_width(sys.stdout))):
            click.echo(str(output))
    for path in facts["written"]:
        print_line(f"wrote {path}")


def _value(output: Any) -> object:
    """Returns the values of a small array; numbers that JSON lacks become text."""
    if output.size > 1000:
        return None
    import numpy as np

    host = np.asarray(output)
    if host.dtype.kind == "c" or not np.isfinite(host.astype(np.float64, copy=False)).all():
        return np.vectorize(str, otypes=[object])(host).tolist()
    return host.astype(object).tolist() if host.dtype.kind == "V" else host.tolist()
