"""`generate`: a random case of a form, the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import replace

from support.differential import bodies
from support.differential.case import MESHES, Arg, Case, Place
from support.differential.script import PYTHON, place_text

FORMS = ("eager", "jit", "aot", "placed", "pmap", "shard_map", "device_put", "from_jax")

DTYPES = (
    *["float32"] * 5, *["int32"] * 3, "bool", "float16", "bfloat16", "complex64", "int8", "uint8",
    "int16", "uint32", "float64", "int64", "uint16", "complex128",
)  # fmt: skip
SHAPES: tuple[tuple[int, ...], ...] = (
    (8,), (8,), (8, 4), (8, 4), (4,), (), (), (3,), (2, 3), (4, 8), (8, 8), (1,), (16,), (0,),
)  # fmt: skip
SETTINGS = (
    "m.default_device(devices[3])", "m.default_device(devices[3])", "m.disable_jit()",
    "m.debug_nans(True)", "m.debug_infs(True)",
)  # fmt: skip


def generate(form: str, seed: int) -> Case:
    """Returns a case of one of the `FORMS`."""
    return Draw(form, seed).case()


def strong(args: tuple[Arg, ...]) -> tuple[Arg, ...]:
    """Returns arguments with arrays in place of weak ones."""
    return tuple(replace(a, kind="array", dtype="int32") if a.kind == "weak" else a for a in args)


class Draw:
    """The choices of one case."""

    def __init__(self, form: str, seed: int) -> None:
        self.form = form
        self.random = random.Random(f"{form} {seed}")
        self.pick = self.random.choice
        self.shape = self.pick(SHAPES)
        self.dtype = self.pick(DTYPES)
        self.common: Place = self.place(self.shape) if self.chance(0.4) else None

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def body(self, *tables: str) -> str:
        return self.pick(bodies.table(self.pick(tables)))

    def case(self) -> Case:
        case: Case = getattr(self, f"{self.form}_case")()
        if any(sign in case.body for sign in (" & ", " | ")):
            # Workaround for xla-and-of-narrowed: no weak array, which is converted.
            case = replace(case, args=strong(case.args), again=strong(case.again))
        if self.chance(0.1):
            object.__setattr__(case, "setting", self.pick(SETTINGS))
        # Drawn last, so that older seeds still give the same cases.
        if self.chance(0.08):
            return self.on_default_device(case)
        return self.in_memory(case) if self.chance(0.05) else case

    def on_default_device(self, case: Case) -> Case:
        """Returns a case that runs on the default device, so that ignoring the setting shows."""
        device = self.pick([2, 5])
        setting = self.pick(["m.default_device", "device_of_config"])
        placing = ("device", "in_shardings", "out_shardings", "devices")
        case = replace(
            case, setting=f"{setting}(devices[{device}])",
            args=tuple(replace(a, place=None) for a in case.args),
            again=tuple(replace(a, place=None) for a in case.again),
            options=tuple(o for o in case.options if o[0] not in placing),
        )  # fmt: skip
        if case.form in ("eager", "jit") and self.chance(0.4):
            text = self.body(bodies.CREATED).replace("DEVICE", str(self.pick([1, 4])))
            case = replace(case, body=text, then="")
        return case

    def in_memory(self, case: Case) -> Case:
        """Returns a case with an argument that is in another memory than its device's default."""
        placed = [i for i, a in enumerate(case.args) if a.kind == "array" and a.place is not None]
        # Workaround for jax-donate-pinned-scalar: nothing is donated.
        if not placed or case.option("donate_argnums") or "donate" in case.body + case.then:
            return case
        args = [*case.args]
        chosen = self.pick(placed)
        args[chosen] = replace(args[chosen], memory="pinned_host")
        return replace(case, args=tuple(args))

    def seed(self) -> int:
        return self.random.randrange(100)

    def spec(self, name: str, shape: tuple[int, ...]) -> tuple[str | tuple[str, ...] | None, ...]:
        """Returns a spec for a mesh, mostly one that divides the shape evenly."""
        sizes, axes, _ = MESHES[name]
        free = [*zip(axes, sizes, strict=True)]
        self.random.shuffle(free)
        spec: list[str | tuple[str, ...] | None] = []
        for size in shape:
            fits = [(a, n) for a, n in free if size % n == 0 or self.chance(0.03)]
            if len(fits) > 1 and self.chance(0.1) and size % (fits[0][1] * fits[1][1]) == 0:
                spec.append((fits[0][0], fits[1][0]))
                free = []
            elif fits and self.chance(0.65):
                spec.append(fits[0][0])
                free.remove(fits[0])
            else:
                spec.append(None)
        if spec and self.chance(0.3):
            spec.pop()
        return tuple(spec)

    def place(self, shape: tuple[int, ...]) -> Place:
        if self.chance(0.35):
            return self.pick([0, 3, 3, 5])
        name = self.pick([*MESHES])
        return name, self.spec(name, shape)

    def arg(self, shape: tuple[int, ...] | None = None) -> Arg:
        shape = self.shape if shape is None else shape
        dtype = self.dtype if self.chance(0.7) else self.pick(DTYPES)
        kind = self.random.choices(
            ["array", "numpy", "python", "scalar", "weak"], [55, 20, 12, 5, 8]
        )[0]
        if kind == "python":
            return Arg(kind, self.pick([*PYTHON]), seed=self.seed())
        if kind == "scalar":
            return Arg(kind, dtype, seed=self.seed())
        if kind == "weak":
            weak = Arg(kind, self.pick(["int", "float", "complex"]), shape, seed=self.seed())
            return weak if self.chance(0.8) else Arg(*self.fields(weak)[:3], self.common, weak.seed)
        place = None
        if kind == "array" and self.common is not None and self.chance(0.85):
            place = self.common if shape == self.shape else None
        elif kind == "array" and self.chance(0.15):
            place = self.place(shape)
        return Arg(kind, dtype, shape, place, self.seed())

    @staticmethod
    def fields(arg: Arg) -> tuple[str, str, tuple[int, ...]]:
        return arg.kind, arg.dtype, arg.shape

    def args(self, count: int) -> tuple[Arg, ...]:
        shapes = [self.shape, *(self.other_shape() for _ in range(count - 1))]
        return tuple(map(self.arg, shapes[:count]))

    def other_shape(self) -> tuple[int, ...]:
        return self.random.choices(
            [self.shape, (), self.shape[-1:], self.pick(SHAPES)], [80, 8, 8, 4]
        )[0]

    def call(self) -> tuple[str, tuple[Arg, ...]]:
        """Returns a body and arguments for it."""
        count = self.random.choices([1, 2, 3], [40, 45, 15])[0]
        if self.chance(0.06):
            return self.body(bodies.RAISING), self.args(1)
        if count == 1:
            weights = [40, 25, 15, 25]
            tables = [bodies.ELEMENTWISE, bodies.OF_WHOLE, bodies.TREES, bodies.CONTROL]
            return self.body(self.random.choices(tables, weights)[0]), self.args(1)
        return self.body(bodies.BINARY if count == 2 else bodies.OF_THREE), self.args(count)

    def again(self, args: tuple[Arg, ...]) -> tuple[Arg, ...]:
        """Returns the arguments of a second call, mostly of the same types."""
        if self.chance(0.6):
            return ()
        found = [Arg(*self.fields(a), a.place, self.seed()) for a in args]
        if self.chance(0.5):
            found[0] = self.arg(found[0].shape)
        return tuple(found)

    def then(self) -> str:
        return self.body(bodies.THEN) if self.chance(0.3) else ""

    def donations(self, count: int) -> list[tuple[str, str]]:
        if self.chance(0.75):
            return []
        chosen = sorted(self.random.sample(range(count), self.random.randint(1, count)))
        return [("donate_argnums", repr(tuple(chosen)))]

    def made(self, body: str, args: tuple[Arg, ...], options: list[tuple[str, str]]) -> Case:
        return Case(
            self.form, body, args, tuple(options), x64=self.chance(0.4), again=self.again(args),
            then=self.then(),
        )  # fmt: skip

    def eager_case(self) -> Case:
        body, args = self.call()
        if self.chance(0.3):
            body, args = self.body(bodies.OPERATORS), (self.arg(),)
        return Case("eager", body, args, x64=self.chance(0.4), then=self.then())

    def jit_options(self, args: tuple[Arg, ...]) -> list[tuple[str, str]]:
        options = self.donations(len(args))
        if self.chance(0.15):
            places = [self.place(a.shape) if self.chance(0.7) else None for a in args]
            if self.chance(0.3):
                places = places[:1]
                options.append(("in_shardings", place_text(places[0])))
            else:
                text = ", ".join(map(place_text, places))
                options.append(("in_shardings", f"({text},)"))
        if self.chance(0.15):
            options.append(("out_shardings", place_text(self.place(self.shape))))
        if self.chance(0.05):
            options.append(("device", f"devices[{self.pick([0, 3, 6])}]"))
        if self.chance(0.08):
            options.append(("keep_unused", "True"))
        if self.chance(0.06):
            options.append(("static_argnums", repr(self.random.randrange(len(args)))))
        return options

    def jit_case(self) -> Case:
        body, args = self.call()
        return self.made(body, args, self.jit_options(args))

    def aot_case(self) -> Case:
        body, args = self.call()
        case = self.made(
            body, args, [o for o in self.jit_options(args) if o[0] != "static_argnums"]
        )
        object.__setattr__(case, "form", "jit")
        object.__setattr__(case, "aot", self.pick(["arrays", "structs", "structs"]))
        return case

    def placed_case(self) -> Case:
        name = self.pick([*MESHES])
        body = self.body(bodies.PLACED)
        body = body.replace("DEVICE", str(self.pick([0, 3, 5]))).replace(
            "mesh=M", f"mesh=mesh({name!r})"
        )
        body = body.replace("S)", place_text(self.place(self.shape)) + ")")
        case = self.made(body, self.args(1), self.donations(1))
        object.__setattr__(case, "form", "jit" if self.chance(0.8) else "eager")
        if case.form == "eager":
            object.__setattr__(case, "options", ())
            object.__setattr__(case, "again", ())
        return case

    def pmap_case(self) -> Case:
        size = self.pick([8, 8, 4, 2, 1, 3])
        inner = self.shape[1:] if self.shape else ()
        self.shape, self.common = (size, *inner), None
        body, args = self.call()
        if self.chance(0.4):
            body, args = self.body(bodies.COLLECTIVE).replace("AXIS", "'i'"), self.args(1)
        options = [("axis_name", "'i'")] if "'i'" in body or self.chance(0.3) else []
        mapped = [0 if len(a.shape) and self.chance(0.9) else None for a in args]
        if None in mapped and self.chance(0.9):
            options.append(("in_axes", f"({', '.join(map(str, mapped))},)"))
        if self.chance(0.1):
            options.append(("out_axes", self.pick(["None", "1", "-1", "0"])))
        if self.chance(0.1):
            first = self.pick([0, 4])
            options.append(("devices", f"devices[{first}:{first + size}]"))
        case = self.made(body, args, options + self.donations(len(args)))
        if any(isinstance(a.place, tuple) and a.place[0] == "reversed" for a in case.all_args):
            # Workaround for jax-pmap-other-order: no second call.
            case = replace(case, again=())
        return case

    def shard_map_case(self) -> Case:
        name = self.pick([*MESHES])
        self.shape = self.pick([(8,), (8, 4), (16, 8), (8, 8)])
        self.common = (name, self.spec(name, self.shape)) if self.chance(0.5) else None
        body, args = self.call()
        if self.chance(0.4):
            axis = repr(self.pick(MESHES[name][1]))
            body, args = self.body(bodies.COLLECTIVE).replace("AXIS", axis), self.args(1)
        specs = [", ".join(map(repr, self.spec(name, a.shape))) for a in args]
        out = self.pick([specs[0], specs[0], "", *map(repr, MESHES[name][1])])
        options = [
            ("mesh", f"mesh({name!r})"), ("in_specs", f"({''.join(f'P({s}), ' for s in specs)})"),
            ("out_specs", f"P({out})"),
        ]  # fmt: skip
        if self.chance(0.5):
            options.append(("check_vma", "False"))
        case = self.made(body, args, options)
        object.__setattr__(case, "transform", "m.jit" if self.chance(0.7) else "")
        return case

    def device_put_case(self) -> Case:
        self.common = self.place(self.shape)
        args = self.args(self.pick([1, 1, 2]))
        options = [("device", place_text(self.place(self.shape)))] if self.chance(0.85) else []
        # Workaround for jax-device-put-donate: no donate=True, which ends the process.
        if self.chance(0.15):
            options.append(("may_alias", self.pick(["True", "False"])))
        return Case(
            "device_put", "None", args, tuple(options), x64=self.chance(0.4), then=self.then()
        )

    def from_jax_case(self) -> Case:
        body, args = self.call()
        case = self.made(body.replace("m.", "jax."), args, self.donations(len(args)))
        object.__setattr__(case, "transform", self.pick(bodies.JAX_TRANSFORMS))
        return case
