"""The key of the compilation cache: everything that a compiled executable depends on."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
from dataclasses import asdict, dataclass, fields
from functools import cache

from plugrt.base import files
from plugrt.interface import Client, CompileOptions, Program
from plugrt.plugins.packages import distributions
from plugrt.settings.declarations import config

_FLAGS = ("_flags", "_init_args")


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a compiled executable depends on; an entry is used only if all are equal."""

    program: str
    """The format of the compiled program, and its SHA-256 without source lines."""
    options: str
    platform: str
    compiler: str
    """The library, build and version that compiles (`Client.compiler_identity`)."""
    devices: str
    processor: str
    versions: str
    """plugrt's version, and the version of StableHLO that the backend reads."""
    flags: str
    """The environment variables with flags that libraries read themselves."""

    def digest(self) -> str:
        """Returns a hash of these facts, which names the file."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def collect_facts(client: Client, program: Program, options: CompileOptions) -> Facts | None:
    """Returns the facts of a program to compile; None if the compiler's identity is unknown."""
    identity = client.compiler_identity
    if identity is None:
        return None
    return Facts(
        program=f"{program.format} {hashlib.sha256(_remove_lines(program)).hexdigest()}",
        options=_options(options),
        platform=f"{client.platform} {client.platform_version}",
        compiler=identity,
        devices=repr(sorted({device.kind for device in client.devices()})),
        processor=cpu_features(),
        versions=repr(
            [distributions.version("plugrt"), client.capabilities.stablehlo_current_version]
        ),
        flags=repr(
            [config.lookup(o)[0] for o in config.declared().values() if o.name.endswith(_FLAGS)]
        ),
    )


def _options(options: CompileOptions) -> str:
    stated = {f.name: getattr(options, f.name) for f in fields(options)}
    stated["env_overrides"] = sorted(options.env_overrides.items())
    return repr(stated)


def _remove_lines(program: Program) -> bytes:
    """Returns the program without its source lines, so that moving a function keeps its entry."""
    if program.format != "mlir" or importlib.util.find_spec("jaxlib") is None:
        return program.code
    from plugrt.stablehlo.passes import strip_locations

    return strip_locations(program.code, program.name)


@cache
def cpu_features(description: files.AnyPath = "/proc/cpuinfo", processor: str | None = None) -> str:
    """Returns a string for system, architecture and instruction sets; equal if all are equal.

    Machine code for another processor may end the process (SIGILL). If the system does not list
    instruction sets in the file ``description``, the name ``processor`` is used, by default this
    machine's.
    """
    try:
        lines = files.read_text(description, errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    stated = next((x for x in lines if x.lower().startswith(("flags", "features"))), "")
    sets = sorted(stated.split()) or [platform.processor() if processor is None else processor]
    digest = hashlib.sha256(" ".join(sets).encode()).hexdigest()[:16]
    return f"{platform.system()}-{platform.machine()}-{digest}"
