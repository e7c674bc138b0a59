# ruff: noqa: E501  a statement in C or StableHLO is one line
"""Defects of arrays: where (function, dtype, length, rank, device, call, thread) and what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

TYPES = {
    "i1": 1, "i8": 2, "i16": 3, "i32": 4, "i64": 5, "ui8": 6, "ui16": 7, "ui32": 8, "ui64": 9,
    "f16": 10, "f32": 11, "f64": 12, "bf16": 13, "complex<f32>": 14, "complex<f64>": 15,
    "f8E5M2": 16, "f8E4M3FN": 17, "f8E4M3B11FNUZ": 18, "f8E5M2FNUZ": 19, "f8E4M3FNUZ": 20,
    "i4": 21, "ui4": 22, "f8E4M3": 26, "f8E3M4": 27, "f8E8M0FNU": 28,
}  # fmt: skip
"""StableHLO's names of the types to PJRT_Buffer_Type."""

WIDE = ("i16", "i32", "i64", "ui16", "ui32", "ui64", "f16", "f32", "f64", "bf16")
FLOATS = ("f16", "f32", "f64", "bf16")
INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")

FLIP = "p[k * w + w - 1] ^= info->type == PJRT_Buffer_Type_PRED ? 1 : 0x80;"
_EACH = "for (size_t i = 0; i < n; i++) { unsigned char* e = p + i * w; "
_CLEAR = {
    "f16": ("uint16_t", 0x8000, 0x7C00),
    "bf16": ("uint16_t", 0x8000, 0x7F80),
    "f32": ("uint32_t", 0x80000000, 0x7F800000),
    "f64": ("uint64_t", 1 << 63, 0x7FF << 52),
}


@dataclass(frozen=True)
class What:
    """A change of the bytes ``p`` of ``n`` elements of ``w`` bytes; ``k`` is an element."""

    name: str
    says: str
    code: str
    least: int = 1
    rank: int = 0
    types: tuple[str, ...] = ()
    computed: bool = True
    """Whether the change exceeds the tolerances of a program's results."""


WHATS = (
    What("dropped", "element {k} is lost (zero)", "memset(p + k * w, 0, w);"),
    What("swapped", "the first and the last element are swapped",
         "for (size_t i = 0; i < w; i++) { unsigned char c = p[i]; p[i] = p[(n-1)*w+i]; p[(n-1)*w+i] = c; }", 2),
    What("sign", "the highest bit of element {k} is wrong", FLIP),
    What("bit", "one bit in the middle of element {k} is wrong",
         "p[k * w + (w > 1 ? w - 2 : 0)] ^= info->type == PJRT_Buffer_Type_PRED ? 1 : w > 1 ? 0x10 : 2;"),
    What("off_by_one", "element {k} is one too large", "p[k * w] += 1;", types=INTEGERS, computed=False),
    What("truncated", "the second half is zero", "memset(p + n / 2 * w, 0, (n - n / 2) * w);"),
    What("tail", "what follows the last whole block of 16 elements is zero",
         "memset(p + n / 16 * 16 * w, 0, n % 16 * w);"),
    What("byteswapped", "the bytes of each element are reversed",
         _EACH + "for (size_t j = 0; j < w / 2; j++) { unsigned char c = e[j]; e[j] = e[w-1-j]; e[w-1-j] = c; } }",
         types=WIDE),
    What("stale", "the previous contents of the same size are there again",
         "static unsigned char* old; static size_t had; pthread_mutex_lock(&lock);"
         "unsigned char* new = malloc(size + 1); memcpy(new, p, size); if (old && had == size) memcpy(p, old, size);"
         "free(old); old = new; had = size; pthread_mutex_unlock(&lock);"),
    What("shifted", "all elements stand one place too far", "memmove(p + w, p, (n - 1) * w);", 2),
    What("repeated", "element {k} is a copy of its neighbour",
         "memcpy(p + k * w, p + (k ? k - 1 : 1) * w, w);", 2),
    What("last_row", "the last row is zero",
         "{ size_t row = info->dims[info->rank - 1]; memset(p + (n - row) * w, 0, row * w); }", 2, 2),
    What("transposed", "the last two dimensions are transposed",
         "size_t R = info->dims[info->rank-2], C = info->dims[info->rank-1]; unsigned char* t = malloc(size);"
         "memcpy(t, p, size); for (size_t b = 0; b < n / (R*C); b++) for (size_t r = 0; r < R; r++) for (size_t c = 0; c < C; c++)"
         " memcpy(p + (b*R*C + c*R + r) * w, t + (b*R*C + r*C + c) * w, w); free(t);", 4, 2),
    What("unsigned", "the highest bit of all elements is lost", _EACH + "e[w - 1] &= 0x7f; }",
         types=("i8", "i16", "i32", "i64", *FLOATS)),
    What("nibble", "values are read as 0 to 15", _EACH + "e[0] &= 15; }", types=("i4",)),
    What("zero_sign", "-0 becomes 0", _EACH + "T v; memcpy(&v, e, w); if (v == SIGN) memset(e, 0, w); }",
         4, types=FLOATS, computed=False),
    What("nan_payload", "every NaN becomes the same NaN",
         _EACH + "T v; memcpy(&v, e, w); if ((v & EXP) == EXP && (v & ~(SIGN | EXP))) { v = EXP | (EXP >> 1); memcpy(e, &v, w); } }",
         4, types=FLOATS, computed=False),
    What("denormals", "denormal numbers become 0", _EACH + "T v; memcpy(&v, e, w); if (!(v & EXP)) memset(e, 0, w); }",
         4, types=FLOATS, computed=False),
    What("smallest", "the smallest integer becomes its successor",
         _EACH + "int smallest = e[w-1] == 0x80; for (size_t j = 0; j + 1 < w; j++) smallest &= e[j] == 0; e[0] |= smallest; }",
         4, types=("i8", "i16", "i32"), computed=False),
)  # fmt: skip

LAST, FIRST, MIDDLE, SECOND = "n - 1", "0", "n / 2", "n > 1"
PLACES = {LAST: "the last", FIRST: "0", MIDDLE: "in the middle", SECOND: "1"}


@dataclass(frozen=True)
class Where:
    """A condition in C over ``info``, its description, and an array that meets it."""

    says: str
    code: str = "1"
    dtype: str = ""
    dims: tuple[int, ...] = ()
    device: int = 0
    every: int = 1
    thread: bool = False


def _length(random: Random) -> Where:
    way = random.randrange(5)
    if way == 0:
        n = random.randint(2, 257)
        return Where(f"of exactly {n} elements", f"info->n == {n}", dims=(n,))
    if way == 1:
        n = 2 ** random.randint(3, 20) + random.choice((-1, 1))
        return Where(f"of exactly {n} elements", f"info->n == {n}", dims=(n,))
    if way == 2:
        base = random.choice((8, 16, 32, 64, 128))
        rest = random.choice((1, base - 1, base // 2 + 1))
        n = base + rest
        return Where(
            f"of {base}k+{rest} elements",
            f"info->n > {base} && info->n % {base} == {rest}",
            dims=(n,),
        )
    if way == 3:
        n = 2 ** random.choice((10, 12, 14, 16, 18, 20))
        return Where(f"of more than {n} elements", f"info->n > {n}", dims=(n + 3,))
    border = random.choice((8, 16, 32, 64, 128, 256, 512)) + random.choice((-1, 1))
    return Where(
        f"whose last dimension is {border}",
        f"info->rank >= 2 && info->dims[info->rank - 1] == {border}",
        dims=(3, border),
    )


def _rank(random: Random) -> Where:
    rank = random.choice((0, 1, 4, 4, 5, 6, 7))
    dims = tuple(random.randint(2, 4) for _ in range(rank))
    return Where(f"of rank {rank}", f"info->rank == {rank}", dims=dims)


def _dtype(random: Random) -> Where:
    name = random.choice(tuple(TYPES))
    return Where(f"of type {name}", f"info->type == {TYPES[name]}", name)


def _device(random: Random) -> Where:
    device = random.randint(1, 3)
    return Where(f"on device {device}", f"info->device == {device}", device=device)


def _count(random: Random) -> Where:
    every = random.choice((2, 3, 5, 7, 13, 50, 97, 256, 500, 997))
    return Where(f"at every {every}th time", f"EVERY({every})", every=every)


def _thread(random: Random) -> Where:
    return Where("called by another thread than loaded the library", "OTHER_THREAD", thread=True)


def _all(random: Random) -> Where:
    return Where("of any kind")


WHERES: dict[str, Callable[[Random], Where]] = {
    "length": _length, "rank": _rank, "dtype": _dtype, "device": _device, "count": _count,
    "thread": _thread, "any": _all,
}  # fmt: skip
WEIGHTS = {"length": 8, "rank": 5, "dtype": 6, "device": 3, "count": 3, "thread": 1, "any": 2}


def both(one: Where, other: Where) -> Where:
    """Returns both conditions; a count is last, and counts only arrays that meet the other."""
    if one.every > 1:
        one, other = other, one
    return Where(
        f"{one.says} {other.says}",
        f"({one.code}) && ({other.code})",
        one.dtype or other.dtype,
        one.dims or other.dims,
        one.device or other.device,
        max(one.every, other.every),
        one.thread or other.thread,
    )


def draw_where(random: Random, names: tuple[str, ...] = tuple(WHERES)) -> tuple[str, Where]:
    """Returns a condition and its name; one in four has two parts."""
    (name,) = random.choices(names, [WEIGHTS[n] for n in names])
    found = WHERES[name](random)
    others = [n for n in ("dtype", "device", "count") if n in names and n != name and name != "any"]
    if others and random.random() < 0.25:
        second = random.choice(others)
        return f"{name}+{second}", both(found, WHERES[second](random))
    return name, found


def fits(what: What, where: Where) -> Where | None:
    """Returns the condition with the types for this change; None if they exclude each other."""
    if where.dims and (len(where.dims) < what.rank or _count_of(where.dims) < what.least):
        return None
    if what.rank and "rank == " in where.code and len(where.dims) < what.rank:
        return None
    if what.types and where.dtype and where.dtype not in what.types:
        return None
    return where


def _count_of(dims: tuple[int, ...]) -> int:
    n = 1
    for d in dims:
        n *= d
    return n


def change_code(what: What, where: Where, place: str) -> str:
    """Returns the C functions ``changes`` and ``change``."""
    dtype = where.dtype or "f32"
    kind, sign, exponent = _CLEAR.get(dtype, _CLEAR["f32"])
    macros = (
        f"#define T {kind}\n#define SIGN (({kind}){sign}u)\n#define EXP (({kind}){exponent}u)\n"
    )
    needs = f"info->n >= {what.least} && info->rank >= {what.rank}"
    return f"""{macros}
static int changes(const Info* info) {{ return {needs} && ({where.code}); }}
static void change(unsigned char* p, size_t size, const Info* info) {{
  size_t n = info->n, w = n ? size / n : 0, k = {place};
  (void)k; if (!w) return;
  {what.code}
}}
"""
