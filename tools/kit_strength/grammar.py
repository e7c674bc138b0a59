# ruff: noqa: E501  a statement in C or StableHLO is one line
"""Composes one defect by seed: a shim library's C text, or a backend's settings, and its witness."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tools.kit_strength import arrays, backends, kinds, scripts
from tools.kit_strength.arrays import (
    PLACES,
    WHATS,
    What,
    Where,
    both,
    change_code,
    draw_where,
    fits,
)

FAMILIES = {"arrays": 22, "operations": 6, "answers": 13, "devices": 8, "programs": 8, "launches": 6,
            "errors": 5, "leaks": 6, "events": 5, "backend": 12}  # fmt: skip
"""The families of defects, and how often each is drawn."""


@dataclass(frozen=True)
class Defect:
    """A library or a backend that does one thing wrong."""

    seed: int
    family: str
    kind: str
    """Its class: what, and the name of the condition."""
    function: str
    """The function of the table at fault, without ``PJRT_``, or the backend's method."""
    words: str
    """A regular expression for the words in a check's id, title or reasons that name the fault."""
    sentence: str
    source: str = field(repr=False)
    """The C text, or for a backend its settings in JSON."""
    script: tuple[str, ...] = field(repr=False)
    """Commands for the witness."""

    @property
    def name(self) -> str:
        return f"s{self.seed}"


_AFTER = "WRAP({f}) {{ PJRT_Error* e = REAL({f}); if (e) return e; {code} return NULL; }}"
_READ = """WRAP(Buffer_ToHostBuffer) {{
  Info i; if (!a->dst || !describe(a->src, &i) || !changes(&i)) return REAL(Buffer_ToHostBuffer);
  NEW(Buffer_ToHostBuffer, q); q.src = a->src; q.host_layout = a->host_layout;
  if (REAL_(Buffer_ToHostBuffer, q)) return REAL(Buffer_ToHostBuffer);
  PJRT_Error* e = REAL(Buffer_ToHostBuffer); if (e) return e;
  NEW(Event_Await, w); w.event = a->event; if (a->event && REAL_(Event_Await, w)) return NULL;
  change(a->dst, q.dst_size, &i);
  return NULL;
}}"""
_PUT = """WRAP(Client_BufferFromHostBuffer) {{
  INFO
  size_t size = i.n * width(a->type);
  if (a->num_byte_strides || a->device_layout || i.rank > MOST_RANK || !changes(&i)) return REAL(Client_BufferFromHostBuffer);
  unsigned char* bytes = malloc(size + 1); memcpy(bytes, a->data, size); change(bytes, size, &i);
  PJRT_Client_BufferFromHostBuffer_Args b = *a; b.data = bytes;
  b.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  PJRT_Error* e = real.PJRT_Client_BufferFromHostBuffer(&b);
  a->buffer = b.buffer; a->done_with_host_buffer = b.done_with_host_buffer;
  if (!e) {{ NEW(Buffer_ReadyEvent, r); r.buffer = b.buffer; if (!REAL_(Buffer_ReadyEvent, r)) finish(r.event); }}
  free(bytes);
  return e;
}}""".replace("INFO", kinds._PUT_INFO)
_EXECUTE = _AFTER.format(f="LoadedExecutable_Execute", code=(
    "Note* note = note_of(a->executable); if (note->key != a->executable) note = learn(a->executable);"
    " if ({TEST}) for (size_t d = 0; d < a->num_devices; d++) for (size_t j = 0; j < note->outputs; j++) change_buffer(&a->output_lists[d][j]);"))  # fmt: skip
_MARK = _AFTER.format(f="{F}", code="learn(a->{X})->marked = {M};")
_RAW = _AFTER.format(f="Buffer_CopyRawToHost", code=(
    "Info i; NEW(Event_Await, w); w.event = a->event; if (REAL_(Event_Await, w) || !describe(a->buffer, &i)) return NULL;"
    " i.n = a->transfer_size; i.rank = 1; i.dims[0] = i.n; if (changes(&i)) change(a->dst, i.n, &i);"))  # fmt: skip
_CHUNK = """WRAP(AsyncHostToDeviceTransferManager_TransferData) {{
  Info i = {{0}}; i.n = a->transfer_size; i.rank = 1; i.dims[0] = i.n; NEW(AsyncHostToDeviceTransferManager_Device, d);
  d.transfer_manager = a->transfer_manager; if (!REAL_(AsyncHostToDeviceTransferManager_Device, d)) i.device = id_of(d.device_out);
  if (!changes(&i)) return REAL(AsyncHostToDeviceTransferManager_TransferData);
  unsigned char* bytes = malloc(i.n + 1); memcpy(bytes, a->data, i.n); change(bytes, i.n, &i); a->data = bytes;
  PJRT_Error* e = REAL(AsyncHostToDeviceTransferManager_TransferData); /* the bytes stay: when it is read is not known */
  return e;
}}"""


def _copier(function: str) -> str:
    return _AFTER.format(f=function, code="change_buffer(&a->dst_buffer);")


PATHS = {
    "read": ("Buffer_ToHostBuffer", "tohostbuffer|read|put_get|to the host|contents", _READ, scripts.show_read, 5),
    "put": ("Client_BufferFromHostBuffer", "fromhostbuffer|\\bput|from the host", _PUT, scripts.show_put, 5),
    "result": ("LoadedExecutable_Execute", "execut|launch|result|program", _EXECUTE.replace("{TEST}", "1"), scripts.show_launch, 6),
    "copy": ("Buffer_CopyToDevice", "cop(y|ies|ied)|to another device", _copier("Buffer_CopyToDevice"), scripts.show_copy, 2),
    "move": ("Buffer_CopyToMemory", "cop(y|ies|ied)|memor", _copier("Buffer_CopyToMemory"), scripts.show_move, 2),
    "raw": ("Buffer_CopyRawToHost", "raw", _RAW, scripts.show_raw, 1),
    "chunk": ("AsyncHostToDeviceTransferManager_TransferData", "transfer|async|chunk", _CHUNK, scripts.show_stream, 1),
    "loaded": ("LoadedExecutable_Execute", "load|serial|saved",
               _EXECUTE.replace("{TEST}", "note->marked") + _MARK.replace("{F}", "Executable_DeserializeAndLoad").replace("{X}", "loaded_executable").replace("{M}", "1"),
               scripts.show_loaded, 1),
}  # fmt: skip
"""Where arrays are changed: function, words of checks, C text, script of the witness, weight."""


def clear(text: str, values: dict[str, str]) -> str:
    """Replaces ``{NAME}`` by values, twice as these may have names, and halves doubled braces."""
    for _ in range(2):
        text = re.sub(r"\{([A-Z]+|where|f|k)\}", lambda m: values.get(m[1], m[0]), text)
    return text.replace("{{", "{").replace("}}", "}")


def library_source(body: str) -> str:
    """Returns the C text of a shim: the shared part, the defect, and the installation of its wrappers."""
    names = sorted(set(re.findall(r"WRAP\((\w+)\) \{", body)))
    slots = " ".join(f"if (real.PJRT_{n}) api.PJRT_{n} = w_{n};" for n in names)
    changing = "" if "static void change(" in body else (
        "static int changes(const Info* i) { (void)i; return 0; }\n"
        "static void change(unsigned char* p, size_t n, const Info* i) { (void)p; (void)n; (void)i; }\n")  # fmt: skip
    errors = [
        n for n in names if n.startswith("Error_") or n in ("Client_Create", "Client_Destroy")
    ]
    for name in errors:  # these call the shim's own functions
        body = body.replace(f"REAL({name})", f"own_{name}(a)")
    body = body.replace(
        "PJRT_Error* e = own_Error_Message(a);", "PJRT_Error* e = NULL; own_Error_Message(a);"
    )
    if "Error_Message" in names:
        body = body.replace(
            "WRAP(Error_Message)", "static void w_Error_Message(PJRT_Error_Message_Args* a)"
        )
        body = body.replace("if (e) return e;", "").replace("return NULL; }", "(void)e; }")
    return f'#include "shim.h"\n{kinds.EXTRA}\n{changing}{body}\nstatic void install(void) {{ {slots} }}\n'


def array_defect(seed: int, path: str, what: What, where: Where, place: str, name: str) -> Defect:
    """Returns the defect that changes arrays in one function."""
    function, words, code, script, _ = PATHS[path]
    if what.types and not where.dtype:
        kind = what.types[seed % len(what.types)]
        where = both(where, Where(f"of type {kind}", f"info->type == {arrays.TYPES[kind]}", kind))
    says = what.says.replace("{k}", PLACES[place])
    sentence = f"PJRT_{function} ({path}): {says}, in an array {where.says}."
    source = library_source(change_code(what, where, place) + clear(code, {}))
    return Defect(seed, "arrays", f"{path}.{what.name}@{name}", function, words, sentence, source, tuple(script(where)))  # fmt: skip


def operation_defect(seed: int, operation: str, what: What, where: Where, place: str, name: str) -> Defect:  # fmt: skip
    """Returns the defect that changes the results of programs with one operation."""
    test = f'has_text(a->program, "stablehlo.{operation}") || has_text(a->program, "{operation}_v")'
    body = _EXECUTE.replace("{TEST}", "note->marked") + _MARK.replace("{F}", "Client_Compile").replace(
        "{X}", "executable").replace("{M}", test)  # fmt: skip
    says = what.says.replace("{k}", PLACES[place])
    sentence = f"Results of programs with {operation}: {says}, {where.says}."
    source = library_source(change_code(what, where, place) + clear(body, {}))
    words = operation.replace("_", ".?")
    return Defect(seed, "operations", f"operation.{what.name}@{name}", "LoadedExecutable_Execute", words,
                  sentence, source, tuple(scripts.show_operation(where, operation)))  # fmt: skip


def kind_defect(seed: int, kind: kinds.Kind, values: dict[str, str], where: Where, name: str, family: str) -> Defect:  # fmt: skip
    """Returns the defect of another function."""
    values = {**values, "WHERE": where.code, "where": where.says, "f": kind.function}
    function = clear(kind.function, values)
    body = kind.after if kind.after.startswith("WRAP") else _AFTER.format(f=function, code="{CODE}").replace("{CODE}", kind.after)  # fmt: skip
    body += kinds.SPECIAL.get(kind.name, "")
    source = library_source(clear(body, values))
    if family == "leaks":
        size = int(values.get("B", "200" if kind.name == "leak.handle" else "20000"))
        need = max(int(values.get("N", "1")) * (4_000_000 // size), 400)
        script = scripts.show_growth(where, min(need, 20_000), function)
    else:
        script = kind.script(where)
    sentence = f"PJRT_{function}: {clear(kind.says, values)}."
    return Defect(seed, family, f"{kind.name}@{name}", function, f"{function.replace('_', '.?')}|{kind.words}",
                  sentence, source, tuple(script))  # fmt: skip


def family_of(kind: kinds.Kind) -> str:
    """Returns the family: the kind's own, or one by its name."""
    if kind.family != "answers":
        return kind.family
    return {"device": "devices", "program": "programs"}.get(kind.name.split(".")[0], "answers")


def draw(random: Random, pools: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Returns a value of each pool; ``VALUE:F=CODE`` gives two."""
    values = {}
    for name, pool in pools.items():
        value, _, second = random.choice(pool).partition(":F=")
        values[name] = value
        if second:
            values["F"] = second
    return values


def pick(random: Random, whats: Sequence[What], names: tuple[str, ...]) -> tuple[What, Where, str, str]:  # fmt: skip
    """Returns a change and a condition that fit, the condition's name, and the function."""
    while True:
        what = random.choice(whats)
        name, where = draw_where(random, names)
        if fits(what, where) is not None:
            return what, where, name, random.choice(tuple(PLACES))


def compose(seed: int) -> Defect:
    """Returns the defect of a seed, the same in every process."""
    random = Random(f"kit strength {seed}")
    (family,) = random.choices(tuple(FAMILIES), tuple(FAMILIES.values()))
    if family == "backend":
        return backend_defect(seed, *backends.draw(random))
    if family == "arrays":
        (path,) = random.choices(tuple(PATHS), [p[-1] for p in PATHS.values()])
        computed = path in ("result", "loaded")
        bytes_alone = path in ("raw", "chunk")
        whats = [
            w
            for w in WHATS
            if (w.computed or not computed) and not (bytes_alone and (w.types or w.rank))
        ]
        names = ("device", "count", "thread", "any") if bytes_alone else tuple(arrays.WHERES)
        what, where, name, place = pick(random, whats, names)
        return array_defect(seed, path, what, where, place, name)
    if family == "operations":
        whats = [w for w in WHATS if w.computed and not w.types and w.least == 1]
        what, where, name, place = pick(random, whats, ("any", "count", "device"))
        return operation_defect(seed, random.choice(scripts.OPERATIONS), what, where, place, name)
    kind = random.choice([k for k in kinds.KINDS if family_of(k) == family])
    values = draw(random, kind.pools)
    name, where = draw_where(random, kind.wheres) if kind.wheres else ("any", Where(""))
    return kind_defect(seed, kind, values, where, name, family)


def backend_defect(seed: int, settings: str, kind: str, method: str, words: str, sentence: str) -> Defect:  # fmt: skip
    """Returns the defect of a backend over the SDK."""
    return Defect(seed, "backend", f"backend.{kind}", method, words, sentence, settings, ())
