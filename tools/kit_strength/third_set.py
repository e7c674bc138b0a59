"""The third set: defects that an audit of the kit tried, or users reported of real plugins."""

from __future__ import annotations

from collections.abc import Iterator

from tools.kit_strength.arrays import LAST, TYPES, WHATS, Where
from tools.kit_strength.grammar import Defect, array_defect, family_of, kind_defect
from tools.kit_strength.kinds import KINDS

PUT, RUN = "Client_BufferFromHostBuffer", "LoadedExecutable_Execute"
ANY = Where("of any kind")
OFTEN = Where("at every 997th time", "EVERY(997)", every=997)
SOME = Where("at every 7th time", "EVERY(7)", every=7)
TILE = Where("whose last dimension is 128k+1", "info->rank > 1 && info->dims[info->rank-1] % 128 == 1 && info->dims[info->rank-1] > 1", dims=(4, 129))  # fmt: skip # noqa: E501
LARGE = Where("of more than 2^20 elements", "info->n > 1 << 20", dims=(1_100_000,))
SHORT = Where("of 64k+63 elements", "info->n % 64 == 63", dims=(127,))
FOUR = Where("of 4 dimensions and more", "info->rank >= 4", dims=(2, 3, 4, 5))
ARRAYS = (
    ("read", "nibble", Where("of type i4", f"info->type == {TYPES['i4']}", "i4")),
    ("read", "dropped", SHORT),
    ("result", "dropped", TILE),
    ("result", "dropped", LARGE),
    ("result", "bit", OFTEN),
    ("read", "zero_sign", Where("of type f32", f"info->type == {TYPES['f32']}", "f32")),
    ("put", "denormals", Where("of type f64", f"info->type == {TYPES['f64']}", "f64")),
    ("copy", "stale", ANY),
    ("loaded", "sign", ANY),
)
OTHERS: tuple[tuple[str, Where, dict[str, str]], ...] = (
    ("put.strides", FOUR, {}),
    ("leak.memory", ANY, {"f": RUN, "B": "256", "N": "1"}),
    ("leak.memory", ANY, {"f": PUT, "B": "1024", "N": "1"}),
    ("leak.descriptor", ANY, {"f": PUT, "N": "4"}),
    ("leak.thread", ANY, {"f": RUN, "N": "16"}),
    ("put.memory", ANY, {}),
    ("device.memories.kind", ANY, {"V": '"device"'}),
    ("device.topology.fewer", ANY, {}),
    ("device.fewer", ANY, {"L": "Devices", "F": "devices"}),
    ("launch.execute_device", ANY, {}),
    ("error.code", ANY, {"f": RUN, "M": "3", "N": "12"}),
    ("error.code", ANY, {"f": "Client_Compile", "M": "2", "N": "12"}),
    ("put.limit", ANY, {"N": "4000000"}),
    ("device.version", ANY, {"L": "Client_PlatformVersion", "V": '""'}),
    ("put.kept", ANY, {}),
    ("put.negative", ANY, {}),
    ("put.zero_strides", ANY, {}),
    ("put.device", Where("on device 2", "info->device == 2", device=2), {}),
    ("launch.kept", ANY, {}),
    ("launch.donated", ANY, {}),
    ("launch.devices_swapped", ANY, {}),
    ("launch.no_event", SOME, {}),
    ("program.compiled.stale", ANY, {}),
    ("program.compiled.device", ANY, {}),
    ("program.saved.stale", ANY, {}),
    ("event.never", SOME, {}),
    ("event.twice", SOME, {}),
    ("event.early", SHORT, {"N": "20"}),
    ("leak.handle", ANY, {"f": "Buffer_Destroy", "N": "7"}),
    ("leak.memory", ANY, {"f": "Client_Compile", "B": "65536", "N": "1"}),
    ("error.message", ANY, {"V": "is empty", "F": "a->message_size = 0"}),
)


def third_set() -> Iterator[Defect]:
    """Yields the defects, whose seeds begin at 3000."""
    seed = 3000
    for path, what, where in ARRAYS:
        (found,) = [w for w in WHATS if w.name == what]
        yield array_defect(seed, path, found, where, LAST, "report")
        seed += 1
    for name, where, values in OTHERS:
        kind = next(
            k for k in KINDS if k.name == name and values.get("f", k.function) == k.function
        )
        yield kind_defect(seed, kind, values, where, "report", family_of(kind))
        seed += 1
