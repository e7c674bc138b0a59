"""`read_header`: reads a header of the PJRT C API without a preprocessor and a compiler.

The header is plain C with few constructs. An unknown construct in a part that matters (the table,
structs, enumerations, function types) is an error; it is not skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from plugrt.capi.abi.declarations import split_fields
from plugrt.errors import InvalidArgument
from plugrt_sdk.abi.api import Api, Field, normalize

LARGEST = 8 << 20
"""The most bytes of a header; upstream's has 150 kB."""

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_LINES = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
_VERSION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+PJRT_API_(MAJOR|MINOR)[ \t]+(\d+)", re.M)
_EXTENSION_VERSION = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+PJRT_API_\w+_EXTENSION_VERSION[ \t]+(\d+)", re.M
)
_EXTENSION = re.compile(
    r"struct (?P<tag>\w*) ?\{ ?"
    r"(?:PJRT_Extension_Base base|size_t struct_size; PJRT_Extension_Type type);[^{}]*"
    r"\} ?(?P<name>\w*)"
)
_INNER_PREFIX = re.compile(r"\bPJRT_(\w*?)_PJRT_")
"""Extensions' headers write it twice, as in PJRT_Layouts_PJRT_Buffer_MemoryLayout."""
_BASE = ("base", "struct_size", "type", "next")
"""The fields at the beginning of every extension's table, in both spellings."""
_STRUCT = re.compile(r"(?:typedef )?struct (?P<tag>\w*) ?\{(?P<body>.*)\}(?P<name> ?\w*)", re.S)
_ENUM = re.compile(r"(?:typedef )?enum (?P<tag>\w*) ?\{(?P<body>.*)\}(?P<name> ?\w*)", re.S)
_FUNCTION = re.compile(
    r"typedef (?P<result>[\w *]+?)\b(?P<name>PJRT_\w+) ?\((?P<parameters>.*)\)", re.S
)
_CALLBACK = re.compile(
    r"typedef (?P<result>.+?)\( ?\* ?(?P<name>PJRT_\w+) ?\) ?(?P<parameters>\(.*\))"
)
_OPAQUE = re.compile(r"typedef struct (?P<name>PJRT_\w+) (?P=name)")
_SLOT = re.compile(r"(?:[A-Z_]+ )?_PJRT_API_STRUCT_FIELD ?\( ?(\w+) ?\)")
_TYPED_SLOT = re.compile(r"(?:[A-Z_]+ )?(PJRT_\w+) ?\* ?\w+")
_POINTER = re.compile(r"(?P<result>.*?)\( ?\* ?(?P<name>\w+) ?\)(?P<parameters>\(.*\))", re.S)
_FIELD = re.compile(r"(?P<type>.*?)(?P<name>\w+)(?P<array>(?:\[[^\]]*\])*)", re.S)


def read_header(path: Path) -> Api:
    """Reads the declarations of a header.

    Raises `InvalidArgument` for a file that is not a complete header.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > LARGEST or b"\0" in content:
        raise InvalidArgument(
            f"{path}: this is not a C header ({len(content)} bytes of binary data)"
        )
    try:
        return parse_header(content.decode("utf-8").replace("\r\n", "\n"), str(path))
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path}: this is not a C header: {error}") from error


def parse_header(text: str, source: str, extension: str = "") -> Api:
    """Parses the text of a header; messages call it ``source``.

    ``extension`` selects a table in a text with several; the default is `PJRT_Api`, or the table of
    an extension's header.
    """
    bare = _LINES.sub("", _COMMENTS.sub(" ", text))
    api = Api(source, (), extension) if extension else _identify(text, bare, source)
    if api.table != "PJRT_Api":
        bare = _INNER_PREFIX.sub(r"PJRT_\1_", bare)
    for declaration in _declarations(bare, source):
        _read(api, declaration)
    if not api.functions:
        raise InvalidArgument(f"{source}: the struct {api.table} is missing or has no functions")
    api.opaque -= api.structs.keys()
    for name in api.functions:
        if name not in api.signatures:
            raise InvalidArgument(f"{source}: the type of the function {name} is not declared")
    return api


def _identify(text: str, bare: str, source: str) -> Api:
    """Returns an `Api` without declarations, with the version and table name of a header."""
    numbers = {name: int(number) for name, number in _VERSION.findall(text)}
    if set(numbers) == {"MAJOR", "MINOR"} and "PJRT_Api" in bare:
        return Api(source, (numbers["MAJOR"], numbers["MINOR"]))
    version, table = _EXTENSION_VERSION.search(text), _EXTENSION.search(" ".join(bare.split()))
    if version is None or table is None:
        raise InvalidArgument(
            f"{source}: this is not pjrt_c_api.h: it lacks PJRT_API_MAJOR, _MINOR or PJRT_Api; and "
            "no header of an extension, which has a PJRT_API_…_EXTENSION_VERSION and a struct that "
            "begins with a PJRT_Extension_Base"
        )
    tag, name = table["tag"], table["name"]
    return Api(source, (int(version[1]),), tag if tag.endswith("_Extension") or not name else name)


def _declarations(text: str, source: str) -> Iterator[str]:
    """Yields each declaration of the file, without its semicolon and in single blanks."""
    text = " ".join(re.sub(r'extern\s+"C"\s*\{', " ", text).split())
    depth, start = 0, 0
    for i, char in enumerate(text):
        if char in "{(":
            depth += 1
        elif char in "})" and depth > 0:
            depth -= 1
            if (
                char == "}"
                and depth == 0
                and text[start:i].lstrip().startswith(("static", "inline"))
            ):
                start = i + 1  # a function with its body
        elif char == "}":
            start = i + 1  # the end of extern "C"
        elif char == ";" and depth == 0:
            yield text[start:i].strip()
            start = i + 1
    rest = text[start:].strip()
    if depth or rest:
        raise InvalidArgument(
            f"{source}: the file is cut short: it ends within {(rest or text[-60:])[:60]!r}"
        )


def _read(api: Api, declaration: str) -> None:
    """Reads one declaration; ignores other kinds (macros, opaque types)."""
    struct, enum = _STRUCT.fullmatch(declaration), _ENUM.fullmatch(declaration)
    opaque = _OPAQUE.fullmatch(declaration)
    callback, function = _CALLBACK.fullmatch(declaration), _FUNCTION.fullmatch(declaration)
    if struct:
        names = [name for name in (struct["name"].strip(), struct["tag"]) if name]
        _read_struct(api, api.table if api.table in names else names[0], struct["body"])
    elif enum:
        _read_enum(api, enum["name"].strip() or enum["tag"], enum["body"])
    elif callback:
        result, parameters = normalize(callback["result"]), normalize(callback["parameters"])
        api.signatures[callback["name"]] = result + parameters
    elif function:
        parameters = normalize(f"({function['parameters']})")
        api.signatures[function["name"]] = normalize(function["result"]) + parameters
    elif opaque:
        api.opaque.add(opaque["name"])
    elif "{" in declaration and not declaration.startswith(("static", "inline", "union")):
        raise InvalidArgument(f"{api.source}: cannot read this declaration: {declaration[:80]!r}")


def _read_struct(api: Api, name: str, body: str) -> None:
    members = [part for part in split_fields(body) if part]
    if name == api.table:
        _read_table(api, members)
    elif name.startswith("PJRT_"):
        api.structs[name] = [_field(api, name, part) for part in members]


def _read_table(api: Api, members: list[str]) -> None:
    """Reads the table, whose functions are macros or types upstream, and pointers in ours.

    An extension's table may have other fields, too.
    """
    for member in members:
        slot, pointer = _SLOT.fullmatch(member), _POINTER.fullmatch(member)
        typed = _TYPED_SLOT.fullmatch(member)
        if slot:
            api.functions.append(slot[1])
        elif pointer:
            name = f"PJRT_{pointer['name'].removeprefix('PJRT_')}"
            api.functions.append(name)
            api.signatures[name] = normalize(pointer["result"]) + normalize(pointer["parameters"])
        elif typed and typed[1] in api.signatures:
            api.functions.append(typed[1])
        elif api.table == "PJRT_Api":
            if api.functions:
                message = f"{api.source}: PJRT_Api has {member!r}, which is no function"
                raise InvalidArgument(message)
        elif (field := _field(api, api.table, member)).name not in _BASE:
            name = f"{api.table}.{field.name}"
            api.functions.append(name)
            api.signatures[name] = field.type


def _field(api: Api, struct: str, text: str) -> Field:
    if text.startswith("union"):
        return Field(text.rpartition("}")[2].strip(), normalize(text))
    pointer = _POINTER.fullmatch(text)
    if pointer:
        return Field(pointer["name"], normalize(f"{pointer['result']}(*){pointer['parameters']}"))
    match = _FIELD.fullmatch(text)
    if match is None or not match["type"].strip() or ":" in text:
        raise InvalidArgument(f"{api.source}: {struct} has {text!r}, which cannot be read")
    return Field(match["name"], normalize(match["type"]) + match["array"].replace(" ", ""))


def _read_enum(api: Api, name: str, body: str) -> None:
    values: dict[str, int] = {}
    following = 0
    for item in filter(None, map(str.strip, body.split(","))):
        constant, _, value = (part.strip() for part in item.partition("="))
        following = _value(api, value, values) if value else following
        values[constant] = following
        following += 1
    name = name or _common_name(values)
    if name.startswith("PJRT_") and not name.endswith("_STRUCT_SIZE"):
        api.enums[name] = {_short(name, constant): value for constant, value in values.items()}


def _short(enum: str, constant: str) -> str:
    """Returns a constant without its type's name; upstream may omit the end of that name."""
    for prefix in (enum, enum.removesuffix("_Type")):
        if constant.startswith(f"{prefix}_"):
            return constant.removeprefix(f"{prefix}_")
    return constant


def _value(api: Api, text: str, values: dict[str, int]) -> int:
    if text in values:
        return values[text]
    try:
        return int(text.strip("()"), 0)
    except ValueError:
        if "sizeof" in text or "STRUCT_SIZE" in text:
            return 0  # an enumerator for a struct's size
        raise InvalidArgument(f"{api.source}: cannot read the enumerator value {text!r}") from None


def _common_name(values: dict[str, int]) -> str:
    """Returns the type's name if only constants state it: their longest common prefix."""
    names = [name.split("_") for name in values]
    same = 0
    while all(len(name) > same + 1 and name[same] == names[0][same] for name in names):
        same += 1
    return "_".join(names[0][:same]) if names else ""
