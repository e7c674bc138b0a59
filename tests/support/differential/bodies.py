"""Bodies of the functions of random cases: expressions of `np`, `lax`, `m` and parameters."""

from __future__ import annotations

ELEMENTWISE = """\
-x|abs(x)|x * 2|x + 1.5|x ** 2|x / 3|x // 2|x % 3|x > 0|~x|np.sin(x)|np.exp(x)|np.sqrt(x)
np.sign(x)|np.floor(x)|np.isnan(x)|np.conj(x)|np.real(x)|np.square(x)|np.logical_not(x)
np.round(x)|np.where(x > 0, x, 0)|np.clip(x, 0, 2)|x.astype('float16')|x.astype('int32')
x.astype('bool')|lax.sin(x)|lax.neg(x)|lax.convert_element_type(x, 'float32')
np.astype(x, np.float32)|2 - x|1 / x|x + numpy.float32(1)|x * True|x + 1j|np.expm1(x)|np.tanh(x)
np.reciprocal(x)|lax.integer_pow(x, 3)|np.positive(x)|np.trunc(x)|np.log2(x)|lax.rsqrt(x)
lax.stop_gradient(x)|np.signbit(x)|x == x|np.zeros_like(x)|np.full_like(x, 3)|np.ones_like(x)
np.nextafter(x, x + 1)
"""
OF_WHOLE = """\
x.sum()|x.mean()|x.max()|x.argmax()|x.prod()|np.any(x)|np.all(x)|x.sum(axis=0)|np.std(x)|np.var(x)
np.count_nonzero(x)|np.cumulative_sum(x, axis=0)|np.max(x, axis=-1, keepdims=True)|x.T
x.reshape(-1)|x.ravel()|x[0]|x[::2]|x[..., None]|np.flip(x)|np.roll(x, 1)
np.expand_dims(x, axis=0)|np.tril(x)|np.sort(x)|np.argsort(x)|np.stack([x, x])|np.concat([x, x])
np.broadcast_to(x, (2, *x.shape))|np.repeat(x, 2)|np.tile(x, 2)|x.at[0].add(1)|x.at[0].set(2)
x.reshape(2, -1)|lax.cumsum(x)|lax.bitcast_convert_type(x, 'int32')
lax.bitcast_convert_type(x, 'float32')|x[-1]|x[None]|np.linalg.vector_norm(x)|np.diff(x)|x @ x
np.min(x, axis=0)|np.argmin(x, axis=0)|x[x.shape[0] - 1]|lax.expand_dims(x, (0,))|np.pad(x, 1)
np.swapaxes(x, 0, -1)|np.squeeze(x)|np.take(x, 0, axis=0)
"""
TREES = """\
x|(x, x)|{'b': x, 'a': [x + 1, None]}|1.5|True|None|(x, 2)|numpy.float32(1)|np.arange(3)
np.zeros(3)|np.asarray(2.0)|np.asarray([1, 2])|(2, x)|()|[x.sum(), x]|(x, x * 2, x)
numpy.arange(4.0)|2|1j|{'c': 1, 'd': x}|np.ones(x.shape)|np.full(x.shape, 2)|np.eye(2)|np.array(1)
[x, numpy.int8(3)]
"""
CONTROL = """\
lax.cond(np.sum(x) > 0, lambda v: v + 1, lambda v: v * 2, x)
lax.fori_loop(0, 3, lambda i, c: c + i, x)|lax.fori_loop(0, 3, lambda i, c: c + 1, x)
lax.scan(lambda c, v: (c + v, c * v), x[0], x)
lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))
lax.map(lambda v: v * 2, x)|lax.switch(1, [lambda v: v, lambda v: -v], x)
m.jit(lambda v: v + 1)(x)|m.jit(lambda v: (v, v * 2))(x)[1]|x if x.sum() > 0 else -x
float(x.sum())|int(x[0])|m.jit(lambda v, w: v)(x, x)|len(x) * x|[v * 2 for v in x]
lax.scan(lambda c, _: (c * 2, None), x, None, length=3)
lax.fori_loop(0, 2, lambda i, c: c + 0, True)|lax.scan(lambda c, v: (c + v, v), 0.0, x)
lax.cond(True, lambda: x, lambda: x * 0)|lax.cond(x[0] > 0, lambda: 1, lambda: 2)
lax.associative_scan(operator.add, x)|m.jit(lambda v: v * 3, donate_argnums=0)(x)|np.where(x > 0)
m.pure_callback(lambda v: numpy.asarray(v) * 2, m.ShapeDtypeStruct(x.shape, x.dtype), x)
m.jit(m.jit(lambda v: v + 1))(x)|lax.optimization_barrier(x)
lax.cond(np.all(x), lambda v: v, lambda v: v + 1.5, x)|m.jit(lambda v: v, inline=True)(x)
lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0)
lax.fori_loop(0, 2, lambda i, c: (c[1], c[0]), (x, x + 1))
"""
BINARY = """\
x + y|x - y|x * y|x / y|x // y|x % y|x ** y|x @ y|x & y|x < y|x == y|x << y|np.maximum(x, y)|x | y
y + x|np.where(x > y, x, y)|np.concat([x, y])|np.stack([x, y])|np.atan2(x, y)|np.logical_and(x, y)
lax.add(x, y)|np.matmul(x, y)|np.outer(x, y)|np.tensordot(x, y, axes=1)|lax.mul(x, y)
lax.max(x, y)|lax.dot(x, y)|(y, x)|x + 1|y * 2|{'s': x + y, 'd': x - y}
lax.cond(np.all(x == x), lambda a, b: a, lambda a, b: b, x, y)
lax.fori_loop(0, 2, lambda i, c: c * y, x)|np.hypot(x, y)|np.logaddexp(x, y)|np.take(x, y, axis=0)
x[y]|m.jit(lambda a, b: a * b)(x, y)|x.at[0].set(y)|(x * 2, y)|(x + y, x)|np.sum(x) + y
lax.select(x > 0, x, y)|m.jit(lambda a: a + y)(x)|lax.scan(lambda c, v: (c + v, c), y, x)
np.copysign(x, y)|x >= y|divmod(x, y)[1]|np.remainder(x, y)|np.subtract(x, y)|lax.pow(x, y)
lax.rem(x, y)|np.minimum(x, y)|x ^ y|(x.sum(), y.sum())
lax.dynamic_update_slice(x, y, (0,) * x.ndim)|np.einsum('i,i->', x, y)|x.at[y].add(1)
lax.clamp(x, y, x)
"""
OF_THREE = """\
x + y * z|np.where(x > 0, y, z)|np.clip(x, y, z)|(z, x, y)|lax.clamp(x, y, z)|x * z|(x + y, z)
[x, y + z, 2]|lax.cond(np.all(x == x), lambda a: a + y, lambda a: a + z, x)|np.concat([x, y, z])
{'x': x + 1, 'z': z}|lax.fori_loop(0, 2, lambda i, c: (c[1], c[0]), (x, y))|x @ y + z
m.jit(lambda a, b: a + b)(x, z) * y
"""
RAISING = """\
np.reshape(x, (7, 11))|undefined|1 // 0|x.sum(axis=9)|x.nosuch|x['a']|x[0, 0, 0, 0]|np.sin('a')
x + 'a'|np.concat([x, 'a'])|x + numpy.zeros((5, 7))|lax.cond(x, lambda: 1, lambda: 2)
x @ numpy.zeros((9, 9))|lax.fori_loop(0, 3, lambda i, c: c[None], x)
lax.scan(lambda c, v: c, x[0], x)|bool(x)|'text'|lax.cond(True, lambda: 1, lambda: 1.5 * x)
lax.add(x, numpy.zeros(7, 'int8'))|lax.psum(x, 'nowhere')|m.jit(3)(x)|m.jit(lambda v: v)(x, x)
x.reshape(-1, -1)|hash(x)|x[1.5]|np.nonzero(x)|lax.while_loop(lambda c: c, lambda c: c, x)
lax.switch(0, [], x)|numpy.asarray(x)|np.arange(x)|set([x])|np.zeros((2, -1))|np.stack([x, x[0]])
lax.broadcast_in_dim(x, (2,), (5,))|x.item()|x.tolist()|range(x[0])
"""
COLLECTIVE = """\
lax.psum(x, AXIS)|lax.pmean(x, AXIS)|lax.pmax(x, AXIS)|lax.all_gather(x, AXIS)
lax.axis_index(AXIS)|lax.psum(1, AXIS)|x + lax.axis_index(AXIS)|lax.psum(x, AXIS) * x
(x, lax.psum(x.sum(), AXIS))|lax.ppermute(x, AXIS, [(0, 1), (1, 0)])
lax.all_gather(x, AXIS, tiled=True)|lax.axis_size(AXIS)|lax.pmin(x, AXIS)|lax.psum(x, 'nowhere')
lax.psum_scatter(x, AXIS, tiled=True)|lax.all_to_all(x, AXIS, 0, 0, tiled=True)
"""
PLACED = """\
constrain(x, S)|(constrain(x, S), x + 1)[1]|m.device_put(x, S)
m.jit(lambda v: v * 2, out_shardings=S)(x)|constrain(x * 2, S).sum()|constrain((x, x), S)
m.jit(lambda v: v + 1, in_shardings=S)(x)|(constrain(x + 1, S), x)
m.shard_map(lambda v: v * 2, mesh=M, in_specs=P('x'), out_specs=P('x'))(x)
(m.shard_map(lambda v: v * 2, mesh=M, in_specs=P('x'), out_specs=P('x'))(x), x + 1)[1]
m.pmap(lambda v: v * 2)(x)|(m.pmap(lambda v: v * 2)(x), x + 1)[1]
lax.cond(x.sum() > 0, lambda v: constrain(v, S), lambda v: v, x)
lax.fori_loop(0, 2, lambda i, c: constrain(c + 1, S), x)
m.jit(lambda v: v, device=devices[DEVICE])(x)
"""
"""``S`` is a sharding, ``M`` a mesh and ``DEVICE`` a number."""

CREATED = """\
np.zeros(3)|np.arange(4, device=devices[DEVICE])|np.ones((2, 3), device=devices[DEVICE])|np.eye(3)
np.asarray([1, 2], device=devices[DEVICE])|np.full(3, 2, device=devices[DEVICE])
np.arange(5) + x.sum()|np.zeros(3, device=devices[DEVICE]) + 1|np.asarray(numpy.arange(3))
m.device_put(numpy.ones(2))|np.linspace(0, 1, 5, device=devices[DEVICE])|np.asarray(2.0)
np.zeros_like(x, device=devices[DEVICE])
"""
"""New arrays; ``DEVICE`` is a number."""

OPERATORS = """\
bool(x)|float(x)|int(x)|complex(x)|len(x)|list(x)|[*x]|x.tolist()|x.item()|numpy.asarray(x)
numpy.sin(x) is not None|x.shape|str(x.dtype)|x.ndim|x.size|x.nbytes|operator.index(x)|hash(x)
round(x)|x.astype(int)|x.is_deleted()|x.copy()|x.at[0].multiply(2)|x[numpy.array([0, 0])]|x[x > 0]
x[True]|math.floor(x)|divmod(x, 2)|2 ** x|x.T @ x|x.flatten()|format(x[0]) != ''|x.delete()
(x.delete(), x + 1)|x.devices() == {devices[0]}|m.device_get(x)|m.block_until_ready(x)
x.block_until_ready()|range(3)[x]|[1, 2, 3][x]|x[0:1, ..., None]|x[::-1]|x[[0, 1]]
x[numpy.array(True)]|x.round()|x.clip(0, 1)|x.repeat(2)|x.sort()|x.std()|x.var(axis=0)|x.dot(x)
x.squeeze()|x.take(0)|x.swapaxes(0, -1)|x.nonzero()|x.conj()|x.real|x.imag|x.cumsum()|x.argsort()
x.all()|x.any()|x.min()|x.mT|x.itemsize|m.device_put(x, x.sharding)|x.on_device_size_in_bytes()
x.is_fully_replicated|x.is_fully_addressable|[s.data for s in x.addressable_shards]
"""
"""Expressions of an array outside of a function; ``eager`` only."""

JAX_TRANSFORMS = ("", "", "jax.jit", "jax.vmap", "jax.checkpoint", "gradient", "value_and_gradient")
"""Applied to functions for `from_jax`; the last two sum the result first."""

THEN = """\
r + r|m.jit(lambda v: v * 2)(r)|m.jit(lambda v: v.sum())(r)|m.device_put(r, devices[2])
m.pmap(lambda v: v + 1)(r)|r[0]|-r|r * numpy.float32(2)|m.jit(lambda a, b: a + b)(r, args[0])
r + args[0]|m.jit(lambda v: (v, 1), donate_argnums=0)(r)|[s.data for s in r.addressable_shards]
m.device_put(r, named('all', 'x'))|m.jit(lambda v: v + 1, out_shardings=named('all'))(r)
m.jit(lambda v: v)(r)|own.stack([r, r])|m.device_get(r)
"""


def table(text: str) -> list[str]:
    """Returns the bodies of a table, which ``|`` separates; the operator has spaces around it."""
    lines = text.replace(" | ", "\0").splitlines()
    return [part.replace("\0", " | ") for line in lines for part in line.split("|")]
