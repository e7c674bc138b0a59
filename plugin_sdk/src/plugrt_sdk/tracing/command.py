"""``plugrt trace``: runs a program and shows the calls between it and its PJRT libraries."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from plugrt.cli.usage import complete_plugin, usage_errors
from plugrt.errors import InvalidArgument, UnknownPlatform
from plugrt_sdk.duration_option import Duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plugrt_sdk.tracing.processes import Process

FORMATS = ("text", "json", "chrome")
LONGEST_DELAY = 3_600_000
"""In milliseconds: an hour."""
NOTHING_TRIED = 2
"""The exit code where the program, which ended with 0, gave ``--check`` no call of a PJRT library,
or made no call that ``--fail`` was to fail."""


@click.command(
    "trace",
    short_help="Run a program and show its calls of a PJRT library.",
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--plugin", metavar="NAME", shell_complete=complete_plugin,
    help="Use this installed plugin (JAX_PLATFORMS).",
)  # fmt: skip
@click.option("--library", metavar="PATH", help="Use the PJRT library at PATH.")
@click.option(
    "--check", is_flag=True,
    help="Check calls and handles; exit with 1 if one is wrong, 2 if there was none to check.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True,
    help="Lines to read, one JSON document, or Chrome's trace events (Perfetto).",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="FILE",
    help="Where calls are written, stderr by default; - is stdout.",
)  # fmt: skip
@click.option("--summary", "brief", is_flag=True, help="Count and time calls, and show none.")
@click.option(
    "--fail", "failures", multiple=True, metavar="FUNCTION[:N][=CODE]",
    help="Fail the Nth call (1; * for all) with CODE (INTERNAL); exit with 2 if there was none.",
)  # fmt: skip
@click.option(
    "--delay-events", type=Duration(0, LONGEST_DELAY), default=0.0, metavar="MS",
    help="Complete each event so late.",
)  # fmt: skip
@click.option("--hide-extension", "hidden", multiple=True, metavar="NAME", help="Leave it out.")
@click.option(
    "--report-minor", type=click.IntRange(0, 10000), metavar="N",
    help="Have the library state version 0.N, and no function newer than that.",
)  # fmt: skip
@click.option(
    "--forward-double-destroys", "forward", is_flag=True,
    help="With --check: have the library see them, too.",
)  # fmt: skip
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def trace(
    plugin: str | None,
    library: str | None,
    check: bool,
    form: str,
    output: str | None,
    brief: bool,
    failures: tuple[str, ...],
    delay_events: float,
    hidden: tuple[str, ...],
    report_minor: int | None,
    forward: bool,
    program: tuple[str, ...],
) -> int:
    """Run PROGRAM with its PJRT library wrapped: calls are logged, timed, counted and checked.

    PROGRAM is any host: Python with plugrt or JAX, torch_xla, a C++ program. Write -- before it. A
    summary follows on stderr. The exit code is the program's; with --check 1 if something was
    found, and 2 if a program that ended with 0 made no call to check; with --fail 2 if it ended
    with 0 and did not make the call that was to fail.

    \b
    plugrt trace -- python train.py
    plugrt trace --check --library libpjrt_mine.so -- python -m pytest
    plugrt trace --format chrome -o calls.json -- python train.py
    plugrt trace --fail Client_Compile:2=RESOURCE_EXHAUSTED -- python train.py
    """
    from plugrt_sdk.tracing import environment, fault_options, plugins, running
    from plugrt_sdk.tracing.showing import Showing

    if plugin and library:
        raise click.UsageError("--plugin and --library exclude each other")
    if form != "text" and output is None:
        raise click.UsageError(f"--format {form} needs -o FILE (- is stdout)")
    with usage_errors(InvalidArgument):
        ordered = {fault_options.read_failure(text): text for text in failures}
        settings = environment.Settings(
            check, not brief, tuple(ordered), delay_events,
            tuple(map(fault_options.read_extension, hidden)), report_minor, forward,
        )  # fmt: skip
    with ExitStack() as stack, usage_errors(InvalidArgument, UnknownPlatform):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plugrt-trace-")))
        environ: dict[str, str] = dict(os.environ)
        if plugin:
            environ = plugins.select_plugin(environ, plugin, folder)
        if library:
            environ = environment.select_library(environ, library)
        file = _open(output, stack)
        showing = Showing(file, form, with_calls=not brief)
        environ = environment.trace_environment(environ, folder, settings)
        code, processes = running.run(program, environ, folder, showing.add)
        showing.finish(processes, {"command": list(program), "exit_code": code, "checked": check})
        unmet = [text for fault, text in ordered.items() if not _is_met(fault, processes)]
        return _conclude(code, processes, check, unmet)


def _open(output: str | None, stack: ExitStack) -> TextIO:
    if output is None:
        return sys.stderr
    if output == "-":
        return sys.stdout
    try:
        return stack.enter_context(open(output, "w", encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument(f"-o {output}: cannot be written: {error.strerror}") from error


def _is_met(fault: str, processes: Sequence[Process]) -> bool:
    """Returns whether a process made the call of a fault that `read_failure` parsed."""
    function, _, rest = fault.partition(":")
    nth = int(rest.partition("=")[0]) or 1
    counts = [p.functions[function].calls for p in processes if function in p.functions]
    return max(counts, default=0) >= nth


def _conclude(
    code: int, processes: Sequence[Process], check: bool, unmet: Sequence[str] = ()
) -> int:
    from plugrt.cli.output import print_line

    called = any(process.functions for process in processes)
    if not processes:
        print_line(
            "plugrt trace: the program loaded no PJRT library. jaxlib's cpu client has no C API; "
            "--plugin cpu has the program use it as a library.", err=True,
        )  # fmt: skip
    elif check and not called:
        print_line(
            "plugrt trace: no call of the library that the program loaded was seen.", err=True
        )
    if check and any(process.findings for process in processes):
        return 1
    if nothing := check and not called:
        print_line("plugrt trace: --check has checked nothing.", err=True)
    for text in unmet:
        print_line(
            f"plugrt trace: --fail {text} was not reached: no process made that call.", err=True
        )
    return code or (NOTHING_TRIED if nothing or unmet else 0)
