"""The environment variables that make a program load its PJRT libraries through the tracer."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plugrt.errors import InvalidArgument
from plugrt.plugins.discovery.env_paths import VARIABLE, parse_libraries
from plugrt_sdk.tracing.library import FOLDER, library_path

_FILE_NAME = re.compile(r"(?:lib)?(?:pjrt_c_api_|pjrt_)?(.+?)(?:_pjrt|_plugin|_pjrt_plugin)?\.so.*")


@dataclass(frozen=True, slots=True)
class Settings:
    """The tracer's settings apart from the folder; see docs/trace.md."""

    check: bool = False
    calls: bool = True
    failures: tuple[str, ...] = ()
    delay_events: float = 0.0
    """Milliseconds."""
    hidden_extensions: tuple[str, ...] = ()
    report_minor: int | None = None
    forward_double_destroys: bool = False

    def variables(self) -> dict[str, str]:
        """Returns the environment variables for these settings."""
        found = {
            "PLUGRT_TRACE_CHECK": str(int(self.check)),
            "PLUGRT_TRACE_CALLS": str(int(self.calls)),
            "PLUGRT_TRACE_FAIL": ",".join(self.failures),
            "PLUGRT_TRACE_DELAY_EVENTS": str(self.delay_events),
            "PLUGRT_TRACE_HIDE_EXTENSIONS": ",".join(self.hidden_extensions),
            "PLUGRT_TRACE_FORWARD_DOUBLE_DESTROYS": str(int(self.forward_double_destroys)),
        }
        if self.report_minor is not None:
            found["PLUGRT_TRACE_REPORT_MINOR"] = str(self.report_minor)
        return found


def trace_environment(base: Mapping[str, str], folder: Path, settings: Settings) -> dict[str, str]:
    """Returns the environment of a program whose PJRT libraries the tracer wraps."""
    preloaded = [str(library_path()), *filter(None, [base.get("LD_PRELOAD")])]
    return {
        **{name: text for name, text in base.items() if not name.startswith("PLUGRT_TRACE_")},
        **settings.variables(),
        FOLDER: str(folder),
        "LD_PRELOAD": ":".join(preloaded),
    }


def select_library(base: Mapping[str, str], path: str | os.PathLike[str]) -> dict[str, str]:
    """Returns an environment that makes hosts use the library at ``path``, by its plugin's name.

    That is its name in ``PJRT_NAMES_AND_LIBRARY_PATHS``, else the name of its file. Raises
    `InvalidArgument` where there is no file.
    """
    library = os.path.abspath(path)
    if not os.path.isfile(library):
        raise InvalidArgument(f"--library {os.fspath(path)}: there is no such file")
    for record in parse_libraries(base.get(VARIABLE, "")):
        if record.library and os.path.realpath(record.library) == os.path.realpath(library):
            return {**base, "JAX_PLATFORMS": record.name}
    match = _FILE_NAME.fullmatch(os.path.basename(library))
    name = re.sub(r"\W", "_", match[1] if match else "traced").lower()
    return name_library(base, name, library) | {
        "PJRT_DEVICE": "LIBRARY",
        "PJRT_LIBRARY_PATH": library,
    }


def name_library(base: Mapping[str, str], name: str, library: str) -> dict[str, str]:
    """Returns an environment that makes the library at that path the plugin ``name``."""
    others = base.get(VARIABLE, "")
    kept = [item for item in others.split(",") if item and not item.strip().startswith(f"{name}:")]
    return {**base, VARIABLE: ",".join([f"{name}:{library}", *kept]), "JAX_PLATFORMS": name}
