"""Runs the conformance kit on the plugins of this repository: ``python -m tools.conform``.

Writes reports in all formats into build/conform, and exits with 1 on a failure that no waiver in
tools/conformance names. ``--pages`` also writes each plugin's ``CONFORMANCE.md``: that needs the
environment of ``nox -s vendors``, which is made if it is missing. Names on the command line select
plugins.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from typing import Any

from tools.test_vendors import QUIET, make_environment

from plugrt_sdk.conformance.reports.markdown import markdown

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build/conform"
WAIVERS = ROOT / "tools/conformance"
NOTE = """\
<!-- Written by tools/conform.py: `nox -s conformance` runs the kit and writes it again. -->
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the kit. ``page`` is the folder whose ``CONFORMANCE.md`` it makes."""

    name: str
    page: str = ""
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    needs_vendors: bool = False
    """Whether it needs a vendor's library, and runs in the environment that has it."""
    serves: str = ""
    """The plugin that `plugrt serve` serves meanwhile, to the plugin that is tried."""
    exports: str = ""
    """The plugin to test, exported as a library with the run's name."""

    @property
    def target(self) -> str:
        """The argument of the command."""
        return str(BUILD.relative_to(ROOT) / self.name) if self.exports else self.name


RUNS = (
    Run("numpy", "plugins/numpy"),
    Run("cpu", "plugins/cpu"),
    # As many devices as `conformance_options` set for the two above.
    Run("xla_cpu", options=("--option", "cpu_device_count=4")),
    Run("libnumpy.so", exports="numpy", options=("--option", "num_devices=4")),
    Run("libcpu.so", exports="cpu", options=("--option", "num_devices=4")),
    Run("remote", "plugins/remote", serves="cpu"),
    Run("cuda", "plugins/cuda", variables=QUIET, needs_vendors=True),
    Run("tpu", "plugins/tpu", variables=QUIET, needs_vendors=True),
)


def main(arguments: Sequence[str]) -> int:
    """Runs the kit on the plugins, one after the other, and returns the exit code."""
    with_pages = "--pages" in arguments
    names = [name for name in arguments if name != "--pages"]
    if unknown := set(names) - {run.name for run in RUNS}:
        print(f"{', '.join(sorted(unknown))}: the plugins are {', '.join(r.name for r in RUNS)}")
        return 2
    chosen = [run for run in RUNS if run.name in names] if names else _by_default(with_pages)
    BUILD.mkdir(parents=True, exist_ok=True)
    codes = [_conform(run) for run in chosen]
    # read now, since pages that this run writes would count as uncommitted changes
    if with_pages:
        for run in chosen:
            _write_page(run)
    return max(codes)


def _by_default(with_pages: bool) -> list[Run]:
    return [run for run in RUNS if (run.page if with_pages else not run.needs_vendors)]


def _conform(run: Run) -> int:
    """Runs the kit and returns its exit code; 2 for a waiver that is no longer needed."""
    python = make_environment() if run.needs_vendors else Path(sys.executable)
    waivers = WAIVERS / f"{run.name}.toml"
    if run.exports:
        export = [python.parent / "plugrt", "export", run.exports, "-o", run.target]
        subprocess.run(export, cwd=ROOT, check=True)
    forms = {"report": "json", "junit": "xml", "markdown": "md", "html": "html", "badge": "svg"}
    command = [
        "plugrt", "conform", run.target, "--jobs", "2", *run.options,
        *(["--waivers", str(waivers.relative_to(ROOT))] if waivers.exists() else []),
        *(f"--{form}={BUILD.relative_to(ROOT) / run.name}.{end}" for form, end in forms.items()),
    ]  # fmt: skip
    with _serving(run, python.parent / command[0]) as variables:
        return subprocess.run(
            [python.parent / command[0], *command[1:]], cwd=ROOT, check=False,
            env={**os.environ, **run.variables, **variables},
        ).returncode  # fmt: skip


@contextmanager
def _serving(run: Run, plugrt: Path) -> Iterator[dict[str, str]]:
    """Runs the server of a run that has one, and gives the variables with its address."""
    if not run.serves:
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/devices"
        command = [plugrt, "serve", "--platform", run.serves, "--bind", address]
        options = {"PLUGRT_CLIENT_CREATE_OPTIONS": f"{run.serves}:num_devices:4"}
        with subprocess.Popen(command, env={**os.environ, **options}, stdout=PIPE) as server:
            assert server.stdout is not None
            server.stdout.readline()  # the server is ready
            try:
                yield {"PLUGRT_REMOTE": address}
            finally:
                server.terminate()


def _write_page(run: Run) -> None:
    text = (BUILD / f"{run.name}.json").read_text("utf-8")
    for folder in (str(ROOT), tempfile.gettempdir()):  # the second has the server's socket
        text = text.replace(f"{folder}{os.sep}", "")
    report: dict[str, Any] = json.loads(text)
    page = ROOT / run.page / "CONFORMANCE.md"
    page.write_text(NOTE + markdown(report), encoding="utf-8")
    print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
