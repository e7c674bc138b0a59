"""`manifest_hash`: one number of all that the kit's verdicts rest on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache, partial
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, resolve_name
from pathlib import Path

from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.module_code import describe
from plugrt_sdk.conformance.random_bits import FILE as STORED_BITS

_JUDGES = (
    "plugrt_sdk.conformance.worker", "plugrt_sdk.conformance.runner",
    "plugrt_sdk.conformance.reports.report",
)  # fmt: skip
"""The modules that run checks, judge them and grant levels."""
WRITTEN = Path(__file__).with_name("module_code.json")
"""Written by ``setup.py`` into wheels only: in an editable installation each source is parsed."""


@cache
def manifest_hash() -> str:
    """Returns a SHA-256: of two runs of one hash, the kit asked the same and judged alike.

    It covers the statements of each check about itself (id, title, level, the text it rests on,
    capability, needs); the code of the checks, of the runner and of the module that grants levels,
    with each module of their packages that these import, which has the limits and tolerances; and
    the stored numbers. Comments, documentation and layout are not in it, nor the kit's folder, nor
    the version of Python.
    """
    return hash_of(registry.checks().values(), STORED_BITS, kit_digests())


def hash_of(checks: Iterable[Check], stored: Path, digests: Mapping[str, str]) -> str:
    """Returns the hash of checks, of the file of stored numbers, and of the digests of code."""
    stated = [_statement(check) for check in checks]
    return _sha256(json.dumps([stated, _sha256(stored.read_bytes()), digests]).encode())


def kit_digests() -> Mapping[str, str]:
    """Returns `code_digests` of the checks, and of the modules that run and judge them."""
    homes = {_module_of(check) for check in registry.checks().values()}
    return code_digests([*homes, *_JUDGES])


def code_digests(modules: Iterable[str], written: Path = WRITTEN) -> Mapping[str, str]:
    """Returns module to the SHA-256 of its code, by name: of these, and of all that they import.

    Modules of other top-level packages than theirs are left out: those have versions of their own,
    which reports state. ``written`` is the file of the digests that a wheel has.
    """
    waiting = list(modules)
    packages = {name.partition(".")[0] for name in waiting}
    found: dict[str, str] = {}
    known: set[str] = set()
    while waiting:
        if (name := waiting.pop()) in known or name.partition(".")[0] not in packages:
            continue
        known.add(name)
        waiting.append(name.rpartition(".")[0])  # the package, which is imported first
        spec = _find(name)
        if spec is None or not (spec.origin and Path(spec.origin).is_file()):
            continue  # something in a module, or a folder
        # Not from the loader: pytest's loader, which rewrites assertions, has no source.
        content = Path(spec.origin).read_bytes()
        found[name] = _sha256(content)
        if spec.origin.endswith(".py"):
            found[name], imports = read_written(written).get(found[name]) or describe(content)
            waiting += (resolve_name(other, spec.parent or "") for other in imports)
    return dict(sorted(found.items()))


@cache
def read_written(file: Path) -> Mapping[str, tuple[str, Sequence[str]]]:
    """Returns what `describe` gives, by the SHA-256 of the source: written as a wheel is built."""
    table: Mapping[str, tuple[str, Sequence[str]]] = (
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    )
    return table


def _statement(check: Check) -> Mapping[str, object]:
    return {f.name: getattr(check, f.name) for f in fields(check) if f.name != "run"}


def _module_of(check: Check) -> str:
    body = check.run.func if isinstance(check.run, partial) else check.run
    return body.__module__


def _find(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except ModuleNotFoundError:  # what should hold it is no package
        return None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
