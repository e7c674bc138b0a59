"""Models to pack, and packed ones that are damaged, or changed with valid checksums."""

from __future__ import annotations

import hashlib
import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import plugrt
from support.changed_headers import changed, join, split

HIDDEN = 8
WEIGHTS = {
    "w": np.linspace(-1, 1, HIDDEN * 3, dtype=np.float32).reshape(3, HIDDEN),
    "b": np.arange(HIDDEN, dtype=np.float32),
}
SCALE = b"""func.func public @main(%w: tensor<3xf32>, %x: tensor<3xf32>, %s: tensor<3xf32>)
    -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = stablehlo.add %x, %s : tensor<3xf32>
  %1 = stablehlo.multiply %w, %0 : tensor<3xf32>
  return %1, %0 : tensor<3xf32>, tensor<3xf32>
}"""
"""``w * (x + s)`` and ``x + s``."""


def pack_sum(path: Path, **options: Any) -> None:
    """Packs `SCALE` with the weight ``w`` and the state ``total``."""
    plugrt.pack_model(
        path, SCALE, names=("w", "x", "total"), outputs=("scaled", "total"), name="sum",
        weights={"w": np.float32([1, 2, 3]), "total": np.zeros(3, np.float32)},
        feeds={"total": "total"}, **options,
    )  # fmt: skip


def damaged(whole: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yields files with a bit changed, cut, without a part, or with one doubled or made random."""
    chance = random.Random(seed)
    for _ in range(count):
        made, at = bytearray(whole), chance.randrange(len(whole))
        how, length = chance.randrange(5), chance.randrange(1, 64)
        if how == 0:
            made[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            del made[at:]
        elif how == 2:
            del made[at : at + length]
        elif how == 3:
            made[at:at] = made[max(0, at - length) : at] or b"\0"
        else:
            made[at : at + length] = chance.randbytes(length)
        yield bytes(made)


def resign(path: Path, target: Path, files: dict[str, bytes], signature: Any = None) -> None:
    """Writes a zip file of a model with other files or another signature, with valid checksums."""
    signature = read_signature(path) if signature is None else signature
    for name, content in files.items():
        digest = hashlib.sha256(content).hexdigest()
        signature["files"][name] = {"size": len(content), "sha256": digest}
    text = json.dumps(signature, sort_keys=True, separators=(",", ":"))
    sealed = {"signature": signature, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = files.get(name, old.read(name))
            if name == "model.json":
                content = json.dumps(json.loads(content) | sealed).encode()
            new.writestr(name, content)


def read_signature(path: Path) -> Any:
    """Returns the signature of a zip file of a model."""
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("model.json"))["signature"]


def changed_signatures(path: Path, count: int, seed: int) -> Iterator[Any]:
    """Yields signatures of a model with one to three changes."""
    for each in changed(join(b"\n", read_signature(path), b""), count, seed):
        yield split(each)[1]
