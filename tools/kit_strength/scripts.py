# ruff: noqa: E501  a statement in C or StableHLO is one line
"""Scripts for `witness.c`, which show a defect."""

from __future__ import annotations

from tools.kit_strength.arrays import TYPES, Where

ONE = "1a0420012801"
TWO = "1a0420022801"
ON_DEVICE = {d: f"1a0f20012801{'4a09080110011a030a01'}{d:02x}" for d in range(4)}
"""Compile options in hexadecimal: one replica, two, and one on a device."""


def on_device(device: int) -> str:
    """Returns the compile options of one replica on a device."""
    return ON_DEVICE[device]


def tensor(dims: tuple[int, ...], dtype: str) -> str:
    """Returns the type in StableHLO."""
    return f"tensor<{''.join(f'{d}x' for d in dims)}{dtype}>"


def module(arguments: str, body: str, results: str, name: str = "main_program") -> str:
    """Returns a module of one line."""
    return f"module @{name} {{ func.func public @main({arguments}) -> ({results}) {{ {body} }} }}"


def add(kind: str, operation: str = "add", attributes: str = "", name: str = "main_program") -> str:
    """Returns a program of two arguments."""
    body = f"%0 = stablehlo.{operation} %a, %b : {kind} return %0 : {kind}"
    return module(f"%a: {kind} {attributes}, %b: {kind}", body, kind, name)


def put(name: str, where: Where, how: str = "dense", memory: int = -1) -> str:
    """Returns the command that puts an array which meets a condition."""
    dims = where.dims or ((2, 3, 4, 5) if how != "dense" else (5, 7))
    if "rank == 0" in where.code:
        dims = ()
    dtype = TYPES[where.dtype or "f32"]
    sizes = " ".join(map(str, dims))
    return f"put {name} {dtype} {where.device} {memory} {how} {len(dims)} {sizes}"


def often(where: Where, *commands: str) -> list[str]:
    """Returns the command as often as the count needs, on the thread of the condition."""
    block = ";".join(commands)
    times = f"{where.every + 1} times " if where.every > 1 else ""
    return [("thread " if where.thread else "") + times + block]


def show_put(where: Where) -> list[str]:
    return [put("w", where), *often(where, put("a", where), "read a", "destroy a")]


def show_read(where: Where) -> list[str]:
    return [put("w", where), put("a", where), *often(where, "read w", "read a")]


def show_raw(where: Where) -> list[str]:
    return [put("a", where), *often(where, "raw a 0 20", "raw a 4 16", "raw a 8 12")]


def show_copy(where: Where, command: str = "copy") -> list[str]:
    source = Where("", dims=where.dims, dtype=where.dtype, device=(where.device + 1) % 4)
    if "rank == 0" in where.code:
        source = Where("", "rank == 0", where.dtype, device=source.device)
    block = (f"{command} a {where.device} b", "meta b", "read b", "read a", "destroy b")
    return [put("w", source), put("a", source), f"{command} w {where.device} v",
            *often(where, *block)]  # fmt: skip


def show_move(where: Where) -> list[str]:
    return show_copy(where, "move")


def _launches(where: Where, program: str, loaded: bool) -> list[str]:
    lines = [f"compile p {on_device(where.device)} {program}", put("a", where), put("b", where)]
    run = "run {} 1 2 1 -1 -1 {} o"
    if loaded:
        lines.append("save p q")
    name = "q" if loaded else "p"
    lines.append(run.format(name, "b a"))
    return [*lines, *often(where, run.format(name, "a b"), "read o", "meta o")]


def show_launch(where: Where, loaded: bool = False) -> list[str]:
    dims = () if "rank == 0" in where.code else where.dims or (5, 7)
    kind = tensor(dims, where.dtype or "f32")
    return _launches(where, add(kind, "subtract" if where.dtype != "i1" else "xor"), loaded)


def show_loaded(where: Where) -> list[str]:
    return show_launch(where, loaded=True)


def show_stream(where: Where) -> list[str]:
    return [*often(where, f"stream a 11 {where.device} 2 7 9", "read a", "destroy a")]


F = "tensor<4x6xf32>"
I = "tensor<4x6xi32>"  # noqa: E741
_UNARY = "exponential log tanh sqrt rsqrt sine cosine negate abs floor ceil sign logistic cbrt"
_BINARY = "subtract multiply divide maximum minimum power remainder atan2"
_BITS = "and or xor shift_left shift_right_arithmetic shift_right_logical"
_REGION = "({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>): {} }})"


def _reducer(operation: str) -> str:
    return _REGION.format(f"%r = stablehlo.{operation} %x, %y : tensor<f32> stablehlo.return %r : tensor<f32>")  # fmt: skip


OTHERS = {
    "transpose": ("tensor<6x4xf32>", f"stablehlo.transpose %a, dims = [1, 0] : ({F}) -> tensor<6x4xf32>"),
    "reshape": ("tensor<24xf32>", f"stablehlo.reshape %a : ({F}) -> tensor<24xf32>"),
    "reverse": (F, f"stablehlo.reverse %a, dims = [1] : {F}"),
    "slice": ("tensor<2x3xf32>", f"stablehlo.slice %a [1:3, 0:6:2] : ({F}) -> tensor<2x3xf32>"),
    "concatenate": ("tensor<8x6xf32>", f"stablehlo.concatenate %a, %b, dim = 0 : ({F}, {F}) -> tensor<8x6xf32>"),
    "broadcast_in_dim": ("tensor<4x6x2xf32>", f"stablehlo.broadcast_in_dim %a, dims = [0, 1] : ({F}) -> tensor<4x6x2xf32>"),
    "iota": ("tensor<40xi32>", "stablehlo.iota dim = 0 : tensor<40xi32>"),
    "convert": ("tensor<4x6xi32>", f"stablehlo.convert %a : ({F}) -> tensor<4x6xi32>"),
    "dot_general": ("tensor<4x4xf32>", f"stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : ({F}, {F}) -> tensor<4x4xf32>"),
    "compare": ("tensor<4x6xi1>", f"stablehlo.compare LT, %a, %b : ({F}, {F}) -> tensor<4x6xi1>"),
    "clamp": (F, f"stablehlo.clamp %a, %b, %a : {F}"),
    "reduce": ("tensor<4xf32>", f"stablehlo.reduce(%c init: %z) applies stablehlo.add across dimensions = [1] : ({F}, tensor<f32>) -> tensor<4xf32>"),
    "pad": ("tensor<6x8xf32>", f"stablehlo.pad %a, %z, low = [1, 1], high = [1, 1], interior = [0, 0] : ({F}, tensor<f32>) -> tensor<6x8xf32>"),
    "sort": (F, f"\"stablehlo.sort\"(%a) <{{dimension = 1 : i64}}> {_REGION.format('%r = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1>')} : ({F}) -> {F}"),
    "reduce_window": ("tensor<4x5xf32>", f'"stablehlo.reduce_window"(%a, %z) <{{window_dimensions = array<i64: 1, 2>}}> {_reducer("maximum")} : ({F}, tensor<f32>) -> tensor<4x5xf32>'),
    "is_finite": ("tensor<4x6xi1>", f"stablehlo.is_finite %a : ({F}) -> tensor<4x6xi1>"),
}  # fmt: skip
"""Operation to the type of its result and its text; %z is 0, %c like %a with other numbers."""
OPERATIONS = (*_UNARY.split(), *_BINARY.split(), *_BITS.split(), *OTHERS)


def operation_program(name: str) -> tuple[str, str]:
    """Returns a program with an operation, and the dtype of its arguments."""
    dtype = "i32" if name in _BITS.split() else "f32"
    kind = tensor((4, 6), dtype)
    zero = "%z = stablehlo.constant dense<0.0> : tensor<f32> %c = stablehlo.constant dense<1.5> : tensor<4x6xf32> "
    if name in OTHERS:
        result, text = OTHERS[name]
    elif name in _UNARY.split():
        result, text = kind, f"stablehlo.{name} %a : {kind}"
    else:
        result, text = kind, f"stablehlo.{name} %a, %b : {kind}"
    used = zero if "%z" in text or "%c" in text else ""
    body = f"{used}%0 = {text} return %0 : {result}"
    return module(f"%a: {kind}, %b: {kind}", body, result), dtype


def show_operation(where: Where, name: str) -> list[str]:
    text, dtype = operation_program(name)
    found = Where("", where.code, dtype, (4, 6), where.device, where.every, where.thread)
    return _launches(found, text, False)


def show_meta(where: Where) -> list[str]:
    other = Where("", where.code, where.dtype, where.dims, (where.device + 1) % 4)
    lines = [put("w", other), "meta w", put("a", where), *often(where, "meta a")]
    return [*lines, "event a", "delete a", *often(where, "meta a", "read a")]


def show_events(where: Where) -> list[str]:
    lines = [put("a", where), *often(where, "event a")]
    run = "run p 1 2 1 -1 -1 a a o"
    return [*lines, f"compile p {ONE} {add(tensor((5, 7), 'f32'))}", put("a", Where("")),
            *often(where, run, "event o", "read o")]  # fmt: skip


def show_client(where: Where) -> list[str]:
    return ["client", *often(where, "client"), "wrong device", "wrong local"]


PAIR = module(
    "%a: tensor<2x3xf32>, %b: tensor<4x5x6xi32>",
    "return %b, %a : tensor<4x5x6xi32>, tensor<2x3xf32>",
    "tensor<4x5x6xi32>, tensor<2x3xf32>",
    "pair_of_results",
)


def show_program(where: Where) -> list[str]:
    other = add("tensor<2x2xf64>", "multiply", name="another")
    return [f"compile p {ONE} {PAIR}", *often(where, "program p"), f"compile q {TWO} {PAIR}",
            "program q", f"compile r {on_device(2)} {other}", "program r", "program p",
            "unload r", "program r"]  # fmt: skip


def show_saved(where: Where) -> list[str]:
    kind = "tensor<5x7xf32>"
    return [f"compile p {ONE} {add(kind)}", f"compile q {ONE} {add(kind, 'multiply')}",
            "put a 11 0 -1 dense 2 5 7", *often(where, "save p r", "save q s",
            "run r 1 2 1 -1 -1 a a o", "read o", "run s 1 2 1 -1 -1 a a o", "read o",
            "program s")]  # fmt: skip


def show_compiled(where: Where) -> list[str]:
    kind = "tensor<5x7xf32>"
    programs = ((ONE, "add"), (ONE, "and"), (ONE, "multiply"), (on_device(2), "add"))
    lines = ["put a 11 0 -1 dense 2 5 7", "put i 11 2 -1 dense 2 5 7"]
    for i, (options, operation) in enumerate(programs):
        text = add("tensor<5x7xi32>" if operation == "and" else kind, operation)
        lines += [*often(where, f"compile p{i} {options} {text}"), f"program p{i}"]
    return [*lines, "run p0 1 2 1 -1 -1 a a o", "read o", "run p2 1 2 1 -1 -1 a a o", "read o",
            "run p3 1 2 1 -1 -1 i i o", "read o", "meta o"]  # fmt: skip


def show_launches(where: Where) -> list[str]:
    kind = "tensor<5x7xf32>"
    donating = add(kind, "subtract", "{tf.aliasing_output = 0 : i32}")
    three = module(f"%a: {kind}, %b: {kind}",
                   f"%0 = stablehlo.subtract %a, %b : {kind} %1 = stablehlo.multiply %a, %b : {kind} "
                   f"return %0, %1 : {kind}, {kind}", f"{kind}, {kind}")  # fmt: skip
    arrays = [f"put {n}{d} 11 {d} -1 dense 2 5 7" for d in (0, 1) for n in "abcd"]
    return [*arrays, f"compile t {TWO} {three}", f"compile p {ONE} {three}", f"compile d {ONE} {donating}",
            *often(where, "run p 1 2 2 -1 -1 a0 b0 x y", "read x", "read y",
                   "run p 1 2 2 -1 -1 b0 c0 x y", "read x", "read y"),
            *often(where, "run t 2 2 2 -1 -1 a0 b0 a1 b1 x y u v", "read x", "read y", "read u", "read v", "meta x", "meta u",
                   "run t 1 2 2 1 -1 a1 b1 x y", "meta x", "read x"),
            *often(where, "put c0 11 0 -1 dense 2 5 7", "put d0 11 0 -1 dense 2 5 7",
                   "run d 1 2 1 -1 0 c0 b0 o", "meta c0", "read o", "run d 1 2 1 -1 -1 d0 b0 o",
                   "meta d0", "read o", "destroy c0", "destroy d0")]  # fmt: skip


def show_errors(where: Where) -> list[str]:
    kinds = ("syntax", "options", "format", "saved", "device", "local", "assignment", "small")
    return ["put a 11 0 -1 dense 2 5 7", *(f"wrong {k}" for k in kinds), "wrong syntax",
            "delete a", "read a", "meta a", "copy a 1 b",
            f"compile p {ONE} {add('tensor<5x7xf32>')}", "run p 1 2 1 -1 -1 a a o"]  # fmt: skip


def show_strided(where: Where, how: str) -> list[str]:
    dims = where.dims or (2, 3, 4, 5)
    found = Where("", where.code, where.dtype, dims, where.device, where.every)
    return [put("w", found), *often(where, put("a", found, how), "read a")]


def show_memories(where: Where) -> list[str]:
    lines = [put("a", where, memory=m) + ";meta a;read a" for m in (0, 1, 2)]
    return [*lines, *show_copy(where), *show_move(where)]


def show_large(where: Where) -> list[str]:
    return [put("a", where), "read a", "meta a"]


def show_growth(where: Where, times: int, function: str) -> list[str]:
    kind = "tensor<5x7xf32>"
    block = (
        f"put a 11 0 -1 dense 2 5 7;{'event a;' * (function == 'Buffer_ReadyEvent')}run p 1 2 1 -1 -1 a a o;meta o;read o;copy o 1 q;"
        "destroy q;destroy a"
    )
    compiled = f"compile c {ONE} {add(kind)};drop c"
    start = [f"compile p {ONE} {add(kind)}", f"300 times {block}", f"20 times {compiled}", "usage"]
    return [*start, f"{times} times {block}", f"{min(times, 40)} times {compiled}", "usage"]
