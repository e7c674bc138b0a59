"""`pow`, and powers by an exponent that is known while tracing."""

from __future__ import annotations

from typing import Any

from plugrt.array_api.elementwise.operands import (
    NUMERIC,
    binary,
)
from plugrt.array_api.fold import highest
from plugrt.errors import DtypeError
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import (
    compare,
    emit,
    full,
    hlo,
    select,
    with_weakness,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind, is_weak_result, itemsize_bits
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike


@with_argument_errors
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Returns ``x1 ** x2``. Numeric dtypes; special values of floats as C's ``pow``.

    Integers stay integers and wrap around; with an exponent of 64 or more in an array, an overflow
    depends on the backend. As in JAX a negative scalar exponent of integers raises `DtypeError`;
    with a negative exponent in an array, or in an argument of a traced function, the result is
    truncated: 0 except for the bases 1 and -1 (JAX: undefined). The arrays broadcast and promote,
    else `ShapeError` or `DtypeError`.
    """
    check_exponent(x1, x2)
    if is_known_exponent(x1, x2):
        known: Array = known_power(x1, exponent=x2)
        return known
    result: Array = power(x1, x2)
    return result


def is_known_exponent(x1: object, x2: Any) -> bool:
    """Whether the exponent, a Python integer, must be a static argument.

    Large exponents are (`is_large`). Outside of a trace, exponents of weak arrays are, since their
    powers are as weak, and of complex arrays, whose powers are products; in a trace the tracer of
    the integer has its value.
    """
    if type(x2) not in (int, bool) or not isinstance(x1, Array | Tracer):
        return False
    kind = dtype_kind(x1.dtype)
    return is_large(x2, kind) or (type(x1) is Array and (x1._aval.weak or kind == "c"))


def is_large(exponent: int, kind: str) -> bool:
    """Whether powers to this exponent are computed by multiplications, as in JAX.

    XLA uses six bits of integers' exponents (jax-5987), and the default integer may have 32 bits.
    """
    return not -(2**31) <= exponent < (64 if kind in "biu" else 2**31)


def check_exponent(base: Any, exponent: Any) -> None:
    """Raises `DtypeError` for integers to a negative power, if the exponent is a known scalar."""
    known = exponent.scalar if type(exponent) is Tracer else exponent
    if not isinstance(known, int):
        if getattr(known, "ndim", 1) or not _is_integral(known):
            return
        known = int(known)
    if known < 0 and _is_integral(base):
        what = f"integers ({base.dtype.name})" if hasattr(base, "dtype") else repr(base)
        raise DtypeError(
            f"pow got {what} to the power {known}; integers have no negative powers. Make the base "
            f"a float (astype), or the exponent ({float(known)})"
        )


def _is_integral(x: object) -> bool:
    dtype = getattr(x, "dtype", None)
    return isinstance(x, int) if dtype is None else dtype_kind(dtype) in "biu"


def _power(x1: Tracer, x2: Tracer, /) -> Tracer:
    a, b = binary("pow", x1, x2, NUMERIC)
    kind = dtype_kind(a.dtype)
    if kind in "iu":
        made = _integer_power(a, b)
    elif kind == "c" and type(x2.scalar) is int:
        made = multiply_out(a, x2.scalar)
    else:
        made = _complex_power(a, b) if kind == "c" else emit(hlo.power, a, b)
    return with_weakness(made, _is_weak_power(x1, x2, kind))


def _is_weak_power(x1: Tracer, x2: Tracer, kind: str) -> bool:
    """Whether a power is weak; with a Python integer as exponent it is as weak as its base."""
    if x2.weak and isinstance(x2.scalar, int):
        return x1.weak and x1.dtype.kind != "b"
    if kind in "iu":
        return False
    if dtype_kind(x2.dtype) in "iu" and dtype_kind(x1.dtype) in "fc":
        return x1.weak and x2.weak
    return is_weak_result([(x.dtype, x.weak) for x in (x1, x2)])


_power.__name__ = _power.__qualname__ = "pow"  # the name in messages and programs


power = operation(weak_by="body")(_power)
"""`pow` as one program for all exponents."""


@operation(static=("exponent",), weak_by="body")
def known_power(x1: Tracer, *, exponent: int) -> Tracer:
    """Returns ``x1 ** exponent``, with one program for each exponent."""
    kind = dtype_kind(x1.dtype)
    if not is_large(exponent, kind):
        return _power(x1, as_tracer(exponent))
    one = as_tracer(1)
    base, _ = binary("pow", x1, one, NUMERIC)
    return with_weakness(multiply_out(base, exponent), _is_weak_power(x1, one, kind))


def multiply_out(x: Tracer, exponent: int) -> Tracer:
    """Returns a power of ``x`` by repeated squaring."""
    left, power, result = exponent if exponent >= 0 else -exponent, x, None
    while left:
        if left & 1:
            result = power if result is None else emit(hlo.multiply, result, power)
        left >>= 1
        if left:
            power = emit(hlo.multiply, power, power)
    if result is None:
        return full(x.shape, 1, x.dtype)
    return emit(hlo.divide, full(x.shape, 1, x.dtype), result) if exponent < 0 else result


def _integer_power(a: Tracer, b: Tracer) -> Tracer:
    zero, one = full(a.shape, 0, a.dtype), full(a.shape, 1, a.dtype)
    # Workaround for jax-5987: XLA uses six bits of the exponent. They suffice for the bases 1 and
    # -1; powers of even bases have overflowed to 0 by then.
    low = full(a.shape, min(63, int(highest(a.dtype))), a.dtype)
    power = emit(hlo.power, a, emit(hlo.and_, b, low))
    if itemsize_bits(a.dtype) >= 8:
        even = compare(emit(hlo.and_, a, one), zero, "EQ")
        power = select(emit(hlo.and_, even, compare(b, low, "GT")), zero, power)
    if dtype_kind(a.dtype) == "i":
        unit = compare(emit(hlo.abs, a), one, "EQ")
        vanishes = emit(hlo.and_, compare(b, zero, "LT"), emit(hlo.not_, unit))
        power = select(vanishes, zero, power)
    return power


def _complex_power(a: Tracer, b: Tracer) -> Tracer:
    # Workaround for xla-complex-power: XLA (jaxlib 0.10) computes exp(b * log(a)), NaN for a == 0;
    # a positive power of 0 is 0.
    zero, real_part = full(a.shape, 0, a.dtype), emit(hlo.real, b)
    positive_ = compare(real_part, full(a.shape, 0, real_part.dtype), "GT")
    vanishes = emit(hlo.and_, compare(a, zero, "EQ"), positive_)
    return select(vanishes, zero, emit(hlo.power, a, b))
