"""``plugrt inspect``: the signature, sizes, buckets and platforms of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from plugrt.cli.output import json_option, print_json, print_line


@click.command("inspect", short_help="Show the signature and sizes of a model.")
@click.argument("model", type=click.Path(exists=True, path_type=Path))
@json_option
def command(model: Path, as_json: bool) -> None:
    """Show the signature, the buckets, the platforms and the sizes of MODEL.

    All files are compared with their checksums. No backend is started.
    """
    from plugrt.models.model_file import WEIGHTS, read_model

    signature, _ = read_model(model)
    sizes = {name: file.size for name, file in signature.files.items()}
    facts: dict[str, Any] = {
        "name": signature.name,
        "inputs": [*map(str, signature.inputs)],
        "outputs": [*map(str, signature.outputs)],
        "feeds": signature.feeds,
        "padded": [*signature.padded],
        "weights": [*map(str, signature.weights)],
        "weight_bytes": sizes.get(WEIGHTS, 0),
        "programs": [
            {"bucket": p.bucket, "platforms": [*p.platforms], "bytes": sizes[p.file]}
            for p in signature.programs
        ],
        "executables": [
            {"bucket": signature.programs[e.program].bucket, "backend": e.backend,
             "version": e.version, "bytes": sizes[e.file]}
            for e in signature.executables
        ],
    }  # fmt: skip
    if as_json:
        print_json(facts)
    else:
        _show(facts)


def _show(facts: dict[str, Any]) -> None:
    print_line(f"model {facts['name']!r}")
    for what in ("inputs", "outputs"):
        for text in facts[what]:
            name = text.partition(":")[0]
            fed = facts["feeds"].get(name) if what == "outputs" else None
            print_line(f"  {what[:-1]:<12}{text}" + (f", feeds {fed}" if fed else ""))
    print_line(f"  {'weights':<12}{len(facts['weights'])}, {facts['weight_bytes']:,} bytes")
    for kind in ("programs", "executables"):
        for each in facts[kind]:
            sizes = ", ".join(f"{name}={n}" for name, n in each["bucket"].items()) or "any call"
            where = each.get("backend") or ", ".join(each["platforms"]) or "any platform"
            print_line(f"  {kind[:-1]:<12}{sizes} for {where}, {each['bytes']:,} bytes")
    if facts["padded"]:
        print_line(f"  {'pads':<12}{', '.join(facts['padded'])}")
