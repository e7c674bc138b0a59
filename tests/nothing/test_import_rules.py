"""The allowed imports of each module: the layers of docs/architecture.md, read from the source."""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.import_graph import imported, modules, references

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "runtime/src/plugrt"
SDK = ROOT / "plugin_sdk/src/plugrt_sdk"
MODULES = modules(RUNTIME)
PLUGINS = sorted(p for p in (ROOT / "plugins").glob("*/src/*") if (p / "__init__.py").exists())

LAYERS = [
    {"errors", "missing_names"},
    {"lifetime"},
    {"base"},
    {"processes"},
    {"interface"},
    {"settings"},
    {"frames"},
    {"wire"},
    {"monitoring"},
    {"_core", "native"},
    {"callbacks"},
    {"capi"},
    {"plugins"},
    {"distributed"},
    {"stablehlo"},
    {"execution", "layout", "memory", "tree", "typing"},
    {"tracing"},
    {"array_api", "lax", "random"},
    {"transforms", "debug", "ffi", "sharding"},
    {"programs", "export", "serialize_executable"},
    {"models"},
    {"profiler"},
    {"demo"},
    {"cli"},
    {"__init__", "__main__"},
]
"""A layer imports from earlier layers in the list and from its own modules.

References in annotations, in functions and in strings count like imports at the top.
"""

STEPS = {
    "capi": (
        "log", "abi", "loading", "library", "extensions", "devices", "buffers", "programs",
        "client", "probing", "__init__",
    ),
    "plugins": (
        "packages",
        ("coordination", "plugin", "vendors", "record", "log",
         "library", "hookspecs", "hooks"),
        "discovery", ("precedence", "plugin_table"), "starting", "selection", "offers", "__init__",
    ),
    "execution": (
        "trees", "shardings", "executables", "compilation", "arrays", "placement", "transfers",
        "launches", "__init__",
    ),
}  # fmt: skip
"""In a divided package, a step imports from earlier ones and from its own modules."""

MOST = 40
"""The largest number of modules in a folder, without ``__init__.py``."""

VENDORS = re.compile(r"nvidia|cuda|cupti|rocm|\bamd\b|libtpu|metal|neuron|oneapi|habana", re.I)
JAXLIB = re.compile("jaxlib")
PRIVATE = re.compile(r"\bjaxlib\._|from jaxlib import _|jaxlib\.mlir\._mlir_libs")


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def layer_number(name: str) -> int:
    for number, names in enumerate(LAYERS):
        if name in names:
            return number
    raise AssertionError(f"{name!r} is in no layer of LAYERS")


def step_number(module: str) -> int:
    """Returns the step of a module within its package; 0 if the package is not divided."""
    _, package, inner, *_ = [*module.split("."), "__init__", "__init__"]
    for number, names in enumerate(STEPS.get(package, ())):
        if inner == names or (isinstance(names, tuple) and inner in names):
            return number
    assert package not in STEPS, f"{module} is in no step of STEPS"
    return 0


def package_of(module: str) -> str:
    """Returns the package of a module; programs use the public names."""
    return module.split(".")[1] if "." in module else "demo"


def name_of(path: Path) -> str:
    """Returns the full name of the module of the runtime in a file."""
    parts = path.relative_to(RUNTIME.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_above(module: str, here: str) -> bool:
    """Whether ``module`` is in a higher layer or step than ``here``, which must not import it."""
    package = here.split(".")[1] if "." in here else "__init__"
    if package_of(module) != package:
        return layer_number(package_of(module)) > layer_number(package)
    return step_number(module) > step_number(here)


@pytest.mark.parametrize("path", sources(RUNTIME), ids=lambda p: str(p.relative_to(RUNTIME)))
def test_a_layer_imports_from_earlier_layers(path: Path) -> None:
    wrong = [
        f"{path}:{line} names {module}, which is above its layer or step"
        for module, line in references(path, MODULES)
        if is_above(module, name_of(path))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_package_is_in_a_layer() -> None:
    for path in RUNTIME.iterdir():
        if path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists()):
            layer_number(path.stem)
    for package in STEPS:
        for path in (RUNTIME / package).iterdir():
            if path.suffix == ".py" or (path / "__init__.py").exists():
                step_number(f"plugrt.{package}.{path.stem}")


def test_each_step_is_there() -> None:
    for package, steps in STEPS.items():
        for name in itertools.chain.from_iterable([n] if isinstance(n, str) else n for n in steps):
            assert f"plugrt.{package}.{name}".removesuffix(".__init__") in MODULES


def test_no_folder_has_too_many_modules() -> None:
    folders = Counter(p.parent for p in sources(RUNTIME) if p.name != "__init__.py")
    assert {folder: n for folder, n in folders.items() if n > MOST} == {}
    assert max(folders.values()) > MOST / 2


def test_the_architecture_has_these_layers() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = page.partition("| package (`plugrt.…`) |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    of_each = [set(re.findall(r"`([^`]+?)/?`", re.sub(r"\(.*?\)", "", row))) for row in rows]
    assert of_each == LAYERS
    folders = {
        package: [n for n in steps if (RUNTIME / package / str(n)).is_dir()]
        for package, steps in STEPS.items()
    }
    stated = dict(re.findall(r"`(\w+)/` \((`.*?→.*?)\)", "".join(rows)))
    assert {p: re.findall(r"`(\w+)/`", names) for p, names in stated.items()} == folders


def test_the_runtime_imports_neither_sdk_nor_plugins() -> None:
    ours = {"plugrt_sdk", *(p.name for p in PLUGINS)}
    assert len(ours) >= 2
    wrong = [
        f"{path}:{line} imports {module}"
        for path in sources(RUNTIME)
        for module, line in imported(path)
        if module.split(".")[0] in ours or module.split(".")[0] in ("jax", "pytest")
    ]
    # jax is imported only where the user passes an object of jax's.
    allowed = {"plugins/starting/jax_plugins.py"}
    allowed |= {f"transforms/jax_{name}.py" for name in ("function", "lowering", "pytrees")}
    wrong = [w for w in wrong if not any(f"plugrt/{a}:" in w for a in allowed)]
    assert not wrong, "\n".join(wrong)


WITH_THE_SDK = {"plugrt_numpy", "plugrt_remote"}
"""The plugins that are written with the SDK, or give JAX their devices by it."""


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda p: p.name)
def test_plugins_import_plugrt_only(plugin: Path) -> None:
    others = {"plugrt_sdk", *(p.name for p in PLUGINS)} - {plugin.name}
    if plugin.name in WITH_THE_SDK:
        others.remove("plugrt_sdk")
    wrong = [
        f"{path}:{line} imports {module}"
        for path in sources(plugin)
        for module, line in imported(path)
        if module.split(".")[0] in others or module.split(".")[0] in ("jax", "pytest")
        # JAX calls this module, whose function imports JAX.
        if (path.name, module.split(".")[0]) != ("for_jax.py", "jax")
    ]
    assert not wrong, "\n".join(wrong)


def test_the_sdk_imports_no_plugin() -> None:
    """Except for a former name, and for the templates of `plugrt new`."""
    allowed = (SDK / "numpy_backend", SDK / "templates", SDK / "conformance/mutants")
    wrong = [
        f"{path}:{line} imports {module}"
        for path in sources(SDK)
        if not any(map(path.is_relative_to, allowed))
        for module, line in imported(path)
        if module.split(".")[0] in {p.name for p in PLUGINS}
    ]
    assert not wrong, "\n".join(wrong)


def code_lines(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yields names, attributes, imports and strings that match, without docstrings and comments."""
    source = path.read_text(encoding="utf-8")
    if not pattern.search(source):  # since parsing all sources needs seconds
        return
    nodes = list(ast.walk(ast.parse(source)))
    documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if id(node) in documentation:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.Name | ast.Attribute):
            text = dotted(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            text = ast.unparse(node)
        else:
            continue
        if pattern.search(text):
            yield node.lineno, text


def dotted(node: ast.expr) -> str:
    """Returns ``a.b.c`` of such an expression, or ``b.c`` if its object is no name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


def test_private_names_of_jaxlib_are_known_in_two_places() -> None:
    allowed = (ROOT / "plugins/cpu/src", RUNTIME / "stablehlo")
    folders = [RUNTIME, SDK, *PLUGINS]
    wrong = [
        f"{path}:{line}: {text}"
        for folder in folders
        for path in sources(folder)
        if not path.is_relative_to(allowed[0]) and not path.is_relative_to(allowed[1])
        for line, text in code_lines(path, JAXLIB)
        if PRIVATE.search(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_jaxlib_is_imported_in_two_places() -> None:
    wrong = [
        f"{path}:{line} imports {module}"
        for path in sources(RUNTIME)
        if not path.is_relative_to(RUNTIME / "stablehlo")
        for module, line in imported(path)
        if module.split(".")[0] == "jaxlib"
    ]
    assert not wrong, "\n".join(wrong)


def test_a_signal_handler_breaks_off_no_import_of_jaxlib() -> None:
    """After an interrupted import the process can never import jaxlib, see `import_native`."""
    wrong = [
        f"{path}:{line}: {text}"
        for folder in (RUNTIME, *PLUGINS)
        for path in sources(folder)
        if path != RUNTIME / "stablehlo/bindings.py"
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.match(r" *(from jaxlib\S* import|import jaxlib)|.*import_module\(.jaxlib", text)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_package_with_packages_in_it_imports_nothing_of_itself() -> None:
    """Earlier, after an interrupt of such an import no later one succeeded, see `names_from`.

    ``plugrt`` itself imports two modules, which import no others that import ``plugrt``'s names.
    """
    wrong = []
    for file in sorted(RUNTIME.glob("*/**/__init__.py")):
        package = ".".join(("plugrt", *file.parent.relative_to(RUNTIME).parts))
        body = ast.parse(file.read_text(encoding="utf-8")).body
        names = [n.module or "" for n in body if isinstance(n, ast.ImportFrom)]
        names += [alias.name for n in body if isinstance(n, ast.Import) for alias in n.names]
        if [*file.parent.glob("*/__init__.py")]:
            wrong += [f"{file} imports {n}" for n in names if f"{n}.".startswith(f"{package}.")]
    assert not wrong, "\n".join(wrong)


def test_one_module_reads_the_metadata_of_distributions() -> None:
    wrong = [
        f"{path}:{line} imports {module}"
        for folder in (RUNTIME, SDK, *PLUGINS)
        for path in sources(folder)
        if path != RUNTIME / "plugins/packages/distributions.py"
        for module, line in imported(path)
        if module.startswith(("importlib_metadata", "importlib.metadata", "pkg_resources"))
    ]
    assert not wrong, "\n".join(wrong)


def test_vendors_are_named_in_one_module() -> None:
    # declarations.py declares JAX's variables for particular vendors, under JAX's names, and
    # dlpack_types.py DLPack's device types for them, under DLPack's.
    allowed = {
        RUNTIME / "plugins/vendors.py",
        RUNTIME / "settings/declarations.py",
        RUNTIME / "base/dlpack_types.py",
    }
    wrong = [
        f"{path}:{line}: {text!r}"
        for path in sources(RUNTIME)
        if path not in allowed
        for line, text in code_lines(path, VENDORS)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "source",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from plugrt.cli.run import f",
        "LATER = {'run': 'plugrt.cli.run'}",
        "from importlib import import_module\nimport_module('plugrt.cli')",
        "run_in_child('plugrt.cli.run:f')",
        "from plugrt import jit",
    ],
)
def test_a_name_of_a_later_layer_is_seen_however_it_is_given(source: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(source)
    named = [layer_number(package_of(module)) for module, _ in references(file, MODULES)]
    assert max(named) > layer_number("execution")


@pytest.mark.parametrize("package", ["array_api", "lax", "random", "transforms"])
def test_no_module_has_the_name_of_a_function_of_its_package(package: str) -> None:
    """Importing such a module would replace the function."""
    folder = RUNTIME / package
    tree = ast.parse((folder / "__init__.py").read_text())
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != f"plugrt.{package}"
        for alias in node.names
    }
    assert not names & {path.stem for path in folder.iterdir()}
