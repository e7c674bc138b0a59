"""Builds wheels and sdists of all distributions into ``dist/`` and checks them, as for a release.

usage: python tools/release.py [TAG]

With a tag (``v0.2.0``), it must be the version that is stated, and the changelog must have a
section for it. The folder ``dist/`` is an index that pip installs from: ``pip install --find-links
dist "plugrt[cpu]"``; the last check does so, in an empty environment. Nothing is uploaded.
"""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).parent / "uv"
PROJECTS = ("runtime", "plugin_sdk", "plugins/cpu", "plugins/cuda", "plugins/tpu")
TRY = """
import importlib.metadata, numpy, plugrt, plugrt_sdk
assert plugrt.__version__ == importlib.metadata.version("plugrt-cpu")
double = plugrt.jit(lambda x: x + x)
assert double(numpy.float32([1, 2])).tolist() == [2, 4]
from plugrt_sdk.export.library import export_library
library = export_library("cpu", "libpjrt_cpu.so")
client = plugrt.plugins.LibraryPlugin("exported", library).create_client({})
array = numpy.float32([1, 2])
assert client.buffer_from_host(array, client.devices()[0]).to_host().tolist() == [1, 2]
print(f"installed from {plugrt.__file__}: plugrt {plugrt.__version__} on {plugrt.devices()}")
"""


def version() -> str:
    """Returns the version of all distributions, which the root ``pyproject.toml`` states."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def check_tag(tag: str, stated: str, changelog: str) -> None:
    """Ends the program unless the tag is the version and the changelog has a section for it."""
    if tag != f"v{stated}":
        raise SystemExit(f"the tag is {tag}, but pyproject.toml states {stated}: `make version`")
    if not re.search(rf"^## {re.escape(stated)}( |$)", changelog, re.MULTILINE):
        raise SystemExit(f"CHANGELOG.md has no section `## {stated}`: rename *Unreleased*")


def build(project: str, sources: Path, out: Path, *formats: str) -> None:
    """Builds a project from a copy in ``sources``, so that the tree and stale files play no part.

    ``formats`` are ``--sdist`` and ``--wheel``; setuptools is the environment's, not downloaded.
    """
    listing = ["git", "ls-files", "-co", "--exclude-standard", project]
    listed = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(lambda n: (ROOT / n).is_file(), listed.splitlines()):
        copy = sources / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    command = [
        UV, "build", *formats, "--quiet", "--no-build-isolation", "--offline",
        "--python", sys.executable, "--out-dir", out, sources / project,
    ]  # fmt: skip
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{project} cannot be built:\n{done.stdout}{done.stderr}")


def metadata(distribution: Path) -> Message:
    """Returns the metadata in a wheel or an sdist."""
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as wheel:
            [name] = [n for n in wheel.namelist() if n.endswith(".dist-info/METADATA")]
            return email.message_from_bytes(wheel.read(name))
    with tarfile.open(distribution) as sdist:
        [name] = [n for n in sdist.getnames() if n.count("/") == 1 and n.endswith("/PKG-INFO")]
        file = sdist.extractfile(name)
        assert file is not None
        return email.message_from_bytes(file.read())


def faults(distributions: list[Path], stated: str) -> Iterator[str]:
    """Yields what is wrong with the distributions of one release, taken together."""
    found = {path.name: metadata(path) for path in distributions}
    names = {message["Name"] for message in found.values()}
    for name in sorted(names):
        kinds = sorted(n.rpartition(".")[2] for n, m in found.items() if m["Name"] == name)
        if kinds != ["gz", "whl"]:
            yield f"{name} has {kinds}, and not one wheel and one sdist"
    for file, message in found.items():
        if message["Version"] != stated:
            yield f"{file} has the version {message['Version']}, not {stated}"
        for requirement in message.get_all("Requires-Dist", []):
            other = re.match(r"[\w-]+", requirement)
            assert other is not None
            bounds = requirement.partition(";")[0]
            if other[0] in names - {message["Name"]} and f">={stated}" not in bounds:
                yield f"{file} requires {requirement!r}, which has no bound from {stated} on"
            if other[0] in names - {message["Name"]} and "<" not in bounds:
                yield f"{file} requires {requirement!r}, which has no upper bound"
    if len(names) != len(PROJECTS):
        yield f"there are {sorted(names)}, and not {len(PROJECTS)} distributions"


def try_out(index: Path) -> None:
    """Installs from ``index`` with pip into an empty environment, and computes something there."""
    with tempfile.TemporaryDirectory(prefix="plugrt-release-") as place:
        subprocess.run([sys.executable, "-m", "venv", f"{place}/venv"], check=True)
        python = f"{place}/venv/bin/python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        ours = ["--find-links", str(index), f"plugrt[cpu]=={version()}", f"plugrt-sdk=={version()}"]
        subprocess.run([*pip, *ours], check=True, cwd=place)
        subprocess.run([python, "-c", TRY], check=True, cwd=place)


def main(tag: str = "") -> None:
    """Builds, checks and tries out; the first fault ends the program."""
    stated = version()
    if tag:
        check_tag(tag, stated, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="plugrt-release-") as sources:
        for project in PROJECTS:
            build(project, Path(sources), out, "--sdist", "--wheel")
    made = sorted([*out.glob("*.whl"), *out.glob("*.tar.gz")])
    if wrong := list(faults(made, stated)):
        raise SystemExit("\n".join(wrong))
    twine = [str(UV), "run", "--isolated", "--locked", "--only-group", "release", "twine"]
    subprocess.run([*twine, "check", "--strict", *map(str, made)], check=True, cwd=ROOT)
    try_out(out)
    print(f"{len(made)} files in {out.relative_to(ROOT)}/ are fit to be released as {stated}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
