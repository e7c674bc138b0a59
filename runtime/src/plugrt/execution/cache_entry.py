"""The file format of the compilation cache's entries: a checked header and the executable.

An entry is a line with the format's name, a line of JSON, and the backend's own bytes. The JSON
holds the facts, field by field, and a checksum of the bytes. It detects entries that were swapped,
copied, truncated or altered, and those of another library, version or processor. It is no
signature: whoever can write the file can write a matching header, so the folder must belong to the
user alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from plugrt import cpu_features
from plugrt.errors import DataLoss, FailedPrecondition
from plugrt.files import parse_json
from plugrt.interface import Client, CompileOptions, Program
from plugrt.plugins import distributions
from plugrt.settings.declarations import config

_MAGIC = b"plugrt compilation cache entry 1\n"
_FLAGS = ("_flags", "_init_args")


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a compiled executable depends on; an entry is used only if all are equal."""

    program: str
    """SHA-256 of the program that is compiled, without source lines, and its format."""
    options: str
    platform: str
    compiler: str
    """The library, build and version that compiles (`Client.compiler_identity`)."""
    devices: str
    processor: str
    versions: str
    """plugrt's own, and that of StableHLO which the backend reads."""
    flags: str
    """The environment variables with flags that libraries read themselves."""

    def digest(self) -> str:
        """Returns a hash of these facts, which names the file."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def collect_facts(client: Client, program: Program, options: CompileOptions) -> Facts | None:
    """Returns the facts of a program to compile, None where the compiler has no identity."""
    identity = client.compiler_identity
    if identity is None:
        return None
    return Facts(
        program=f"{program.format} {hashlib.sha256(_without_lines(program)).hexdigest()}",
        options=_options(options),
        platform=f"{client.platform} {client.platform_version}",
        compiler=identity,
        devices=repr(sorted({device.kind for device in client.devices()})),
        processor=cpu_features.features(),
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


def _without_lines(program: Program) -> bytes:
    """Returns the program without its source lines, so that moving a function keeps its entry."""
    if program.format != "mlir" or importlib.util.find_spec("jaxlib") is None:
        return program.code
    from plugrt.stablehlo.modules import bytecode, parse
    from plugrt.stablehlo.passes import run_passes

    module = parse(program.code, program.name)
    run_passes(module, "strip-debuginfo")
    return bytecode(module)


def encode_entry(body: bytes, facts: Facts) -> bytes:
    """Returns an entry: a header with these facts, then the backend's bytes."""
    header = {"facts": asdict(facts), "sha256": hashlib.sha256(body).hexdigest()}
    return _MAGIC + json.dumps(header).encode() + b"\n" + body


def decode_entry(content: bytes, facts: Facts) -> bytes:
    """Returns the backend's bytes of an entry that was made of exactly these facts.

    Raises `DataLoss` for an incomplete or damaged entry, and `FailedPrecondition`, with the fields
    that differ, for the entry of another program, library or machine.
    """
    if not content.startswith(_MAGIC):
        raise DataLoss(f"these {len(content)} bytes are no entry of the compilation cache")
    line, found, body = content[len(_MAGIC) :].partition(b"\n")
    try:
        header = parse_json(line) if found else None
    except ValueError:
        header = None
    made_of: Any = header.get("facts") if isinstance(header, dict) else None
    if not isinstance(header, dict) or not isinstance(made_of, dict):
        raise DataLoss("the header of the entry is damaged")
    expected = asdict(facts)
    differing = [k for k in expected if made_of.get(k) != expected[k]]
    if differing or made_of.keys() != expected.keys():
        raise FailedPrecondition(
            f"it is an entry of another {' and of another '.join(differing) or 'format'}"
        )
    if header.get("sha256") != hashlib.sha256(body).hexdigest():
        raise DataLoss(f"the entry of {len(content)} bytes is cut off or damaged")
    return body
