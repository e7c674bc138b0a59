"""What tells one entry of the compilation cache from another."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plugrt.errors import DataLoss, FailedPrecondition, InvalidArgument
from plugrt.execution.compilation import cpu_features
from plugrt.execution.compilation.cache_key import Facts, collect_facts
from plugrt.execution.compilation.compilation_cache import decode_entry, encode_entry
from plugrt.interface import CompileOptions, DeviceAssignment, Program
from support.fake_client import FakeClient


def facts(**changed: Any) -> Facts:
    made = collect_facts(FakeClient(), Program(b"some bytes", format="hlo"), CompileOptions())
    assert made is not None
    return replace(made, **changed)


def test_an_entry_gives_its_bytes_for_its_own_facts_only() -> None:
    entry = encode_entry(b"\n\x00machine code", facts())
    assert decode_entry(entry, facts()) == (b"\n\x00machine code", 0.0)
    for name in Facts.__dataclass_fields__:
        other = facts(**{name: "other"})
        assert other.digest() != facts().digest()
        with pytest.raises(FailedPrecondition, match=name):
            decode_entry(entry, other)


def test_no_alteration_gives_bytes_other_than_those_kept() -> None:
    chance, body = random.Random(3), bytes(range(256)) * 4
    entry = encode_entry(body, facts())
    for _ in range(3000):
        content = bytearray(entry)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(content))
            content[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        with contextlib.suppress(DataLoss, FailedPrecondition, InvalidArgument):
            assert decode_entry(bytes(content), facts())[0] == body


@pytest.mark.parametrize("line", [
    b"", b"[]", b"{}", b"null", b'{"facts": 3}', b'{"facts": {}}', b"[" * 100_000, b"\xff",
    b'{"facts": {"program": []}, "sha256": 3}',
])  # fmt: skip
def test_headers_of_any_shape_are_refused(line: bytes) -> None:
    magic = encode_entry(b"", facts()).partition(b"\n")[0]
    with pytest.raises((DataLoss, FailedPrecondition)):
        decode_entry(magic + b"\n" + line + b"\nbody", facts())


def test_two_programs_or_options_never_share_a_name() -> None:
    chance = random.Random(5)
    overrides = [("a", True), ("a", 1), ("b", "1"), ("b", 1.0)]

    def some_options() -> CompileOptions:
        replicas = chance.choice([1, 2])
        ids = tuple((i,) for i in chance.sample(range(4), replicas))
        return CompileOptions(
            num_replicas=replicas,
            device_assignment=chance.choice([None, DeviceAssignment(ids)]),
            use_spmd_partitioning=chance.random() < 0.5,
            use_shardy_partitioner=chance.random() < 0.5,
            parameter_is_tupled=chance.random() < 0.5,
            env_overrides=dict(sorted(chance.sample(overrides, chance.randrange(3)), key=repr)),
            encoded=chance.choice([None, b"", b"x"]),
        )

    seen: dict[str, str] = {}
    for _ in range(600):
        program = Program(chance.choice([b"a", b"b", b"ab"]), chance.choice(["hlo", "hlo_x"]), "m")
        options = some_options()
        made = collect_facts(FakeClient(), program, options)
        assert made is not None
        what = f"{program} {options}"
        assert seen.setdefault(made.digest(), what) == what
    assert len(seen) > 300


@pytest.mark.parametrize("name", ["platform", "platform_version", "compiler_identity"])
def test_another_backend_or_build_has_other_entries(name: str) -> None:
    class Other(FakeClient):
        pass

    setattr(Other, name, property(lambda self: "other"))
    options, program = CompileOptions(), Program(b"x", "hlo")
    made = collect_facts(Other(), program, options)
    assert made is not None
    assert made != collect_facts(FakeClient(), program, options)


def test_a_backend_that_cannot_be_told_apart_keeps_nothing() -> None:
    class Nameless(FakeClient):
        compiler_identity = None

    assert collect_facts(Nameless(), Program(b"x", "hlo"), CompileOptions()) is None


def test_another_processor_has_other_entries(tmp_path: Path) -> None:
    words = set()
    for i, text in enumerate(["flags: sse avx", "flags: sse avx avx512f", "Features : neon sve"]):
        (tmp_path / f"{i}").write_text(f"processor: 0\n{text}\n")
        words.add(cpu_features.features(tmp_path / f"{i}"))
    (tmp_path / "again").write_text("model name: another\nflags: avx sse\n")
    assert cpu_features.features(tmp_path / "again") in words
    assert len(words) == 3
    assert cpu_features.features(tmp_path / "absent") not in words
