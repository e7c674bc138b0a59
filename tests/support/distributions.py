"""Installed distributions made by hand in a folder, like pip's."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from support import children, warm_children

PLUGIN = """
from support.fake_client import FakePlugin
plugin = FakePlugin({name!r}, priority={priority})
"""
"""The source of a module that offers a healthy plugin."""


def install(
    folder: Path,
    distribution: str,
    entry_points: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str] | None = None,
    version: str = "1.0",
    metadata: bool = True,
) -> Path:
    """Makes a dist-info folder and modules in ``folder``; returns the dist-info folder."""
    stem = distribution.replace("-", "_")
    info = folder / f"{stem}-{version}.dist-info"
    info.mkdir(parents=True)
    if metadata:
        text = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        (info / "METADATA").write_text(text)
    lines = []
    for group, entries in entry_points.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))
    for name, source in (modules or {}).items():
        file = folder.joinpath(*name.split("."))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".py").write_text(textwrap.dedent(source))
    return info


def install_plugin(
    folder: Path, name: str, source: str | None = None, *, priority: int = 400,
    distribution: str = "", group: str = "plugrt.plugins", version: str = "1.0",
) -> Path:  # fmt: skip
    """Installs a plugin ``name`` in the module ``<name>_module``; healthy if no source is given."""
    module = f"{distribution.replace('-', '_') or name}_module"
    return install(
        folder,
        distribution or f"{name}-dist",
        {group: {name: f"{module}:plugin"}},
        {module: source or PLUGIN.format(name=name, priority=priority)},
        version,
    )


PATIENT = {"PLUGRT_DOCTOR_SECONDS": "120", "PLUGRT_PROBE_SECONDS": "90"}
"""Limits for a loaded machine; a test of the limits sets its own."""


def child_environment(*folders: Path, **environ: str) -> dict[str, str]:
    """Returns the variables of a child with ``folders`` (and tests/) at the front of its path.

    Variables of plugrt and JAX in the caller's environment are not passed on, except the
    implementation of calls under test. Nor is the terminal's width: pytest's workers have 80
    columns.
    """
    own = ("JAX_", "PLUGRT_", "PJRT_", "XLA_", "COLUMNS")
    env = {k: v for k, v in os.environ.items() if k == "PLUGRT_CORE" or not k.startswith(own)}
    env["PYTHONPATH"] = children.path_with(*folders, Path(__file__).parents[1])
    return env | PATIENT | environ


def run_python(
    code: str, *folders: Path, arguments: tuple[str, ...] = (), timeout: float = 150, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Runs ``python -c code`` in a new interpreter; see `child_environment`."""
    env = child_environment(*folders, **environ)
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return children.run(command, env=env, timeout=timeout)


def run_warm(
    code: str, *folders: Path, arguments: tuple[str, ...] = (), timeout: float = 150,
    stdin: Path = Path(os.devnull), **environ: str,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Runs code like `run_python`, in a child that has imported plugrt and NumPy.

    Uses a new interpreter if ``environ`` has variables that are read at start.
    """
    env = child_environment(*folders, **environ)
    if not warm_children.is_warm(env):
        return run_python(code, *folders, arguments=arguments, timeout=timeout, **environ)
    return warm_children.run(textwrap.dedent(code), arguments, env, timeout, stdin)


def run_cli(
    *arguments: object,
    folders: tuple[Path, ...] = (),
    timeout: float = 150,
    stdin: Path = Path(os.devnull),
    **environ: str,
) -> subprocess.CompletedProcess[str]:
    """Runs ``plugrt`` with arguments; see `run_warm`."""
    code = "import plugrt.cli, sys; plugrt.cli.main(sys.argv[1:])"
    words = tuple(map(str, arguments))
    return run_warm(code, *folders, arguments=words, timeout=timeout, stdin=stdin, **environ)
