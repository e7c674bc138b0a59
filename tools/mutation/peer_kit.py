"""The most similar other conformance kit, ``pypjrt.conform``, on this kit's mutants.

It is a ctypes client of PJRT libraries (https://github.com/pedronahum/pypjrt) and is not among the
project's dependencies: ``pip install --target FOLDER pypjrt==0.1.1``, and ``PLUGRT_PEER=FOLDER``.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plugrt.capi.library.capsule import address_in
from plugrt.plugins import LibraryPlugin, Plugin
from plugrt_sdk.export import export_capsule
from support.clib import compile_c

_SHIM = r"""
#include <stdlib.h>
const void* GetPjrtApi(void) {
  const char* table = getenv("PLUGRT_TABLE");
  return table ? (const void*)strtoull(table, 0, 16) : 0;
}
"""


def why_no_peer() -> str:
    """Returns the reason why the peer cannot run; empty if it can."""
    folder = os.environ.get("PLUGRT_PEER", "")
    if folder and folder not in sys.path:
        sys.path.append(folder)
    if importlib.util.find_spec("pypjrt") is None:
        return (
            "pypjrt is not installed (pip install --target FOLDER pypjrt, and PLUGRT_PEER=FOLDER)"
        )
    return "" if shutil.which("cc") else "there is no C compiler for the library that it loads"


def export(plugin: Plugin) -> object:
    """Returns the capsule of a plugin's function table: its own if it is a library."""
    if isinstance(plugin, LibraryPlugin):
        return plugin.c_api
    return export_capsule(lambda **options: plugin.create_client(options), platform="mutant")


class PeerKit:
    """The peer, with a library in ``folder`` that returns this process's function table."""

    def __init__(self, folder: Path) -> None:
        self._library = compile_c(folder, _SHIM)
        self._conform: Any = importlib.import_module("pypjrt.conform")

    def failures(self, plugin: Plugin) -> Mapping[str, str]:
        """Returns the checks of the peer that a plugin fails, with their messages.

        Call it in a process of its own. The peer runs like its command; checks that it reports as
        unsupported or skipped are no failures, as in its exit code.
        """
        os.environ["PLUGRT_TABLE"] = hex(address_in(export(plugin), "the mutant"))
        return self.failures_of(self._library)

    def failures_of(self, library: Path) -> Mapping[str, str]:
        """Like `failures`, for a library."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(None):
            path = Path(folder) / "report.json"
            self._conform.main([str(library), "--json", str(path)])
            rows = json.loads(path.read_text())["checks"]
        return {row["id"]: row["detail"] for row in rows if row["result"] == "fail"}
