"""Whether stock JAX would find the candidates of ``plugrt doctor``; read from metadata alone.

JAX registers the libraries of ``PJRT_NAMES_AND_LIBRARY_PATHS``, the modules of the namespace
package ``jax_plugins`` and the modules of the entry points ``jax_plugins``, and then starts the
platforms in ``JAX_PLATFORMS``. Neither JAX nor a plugin is imported here.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from plugrt.plugins import vendors
from plugrt.plugins.discovery import env_paths
from plugrt.plugins.discovery.installed_plugins import entry_points
from plugrt.plugins.discovery.versions import is_version_allowed, requirements
from plugrt.plugins.packages import distributions
from plugrt.plugins.packages.distributions import Distribution, normalise_name
from plugrt.plugins.record import Source, State

NOT_ANNOUNCED = "not announced"
"""The state of the row of an installed library that nothing names."""
_GROUP = "jax_plugins"
_SDK = "plugrt-sdk"


class _NotFound(Exception):
    """Says why JAX finds no such platform."""


def explain(
    row: Mapping[str, Any], platforms: Sequence[str], aliases: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Returns ``found``, a boolean, and ``because``, for a row of `Examination.candidates`.

    ``platforms`` are the names in ``JAX_PLATFORMS``.
    """
    try:
        if fault := explain_missing_jax():
            raise _NotFound(fault)
        how, names = _find(row)
        _refuse_broken(row)
        _refuse_unselected(row, {*names, row["name"]}, platforms, aliases)
    except _NotFound as reason:
        return {"found": False, "because": str(reason)}
    return {"found": True, "because": how}


def describe_jax(row: Mapping[str, Any]) -> str:
    """Returns the result of `explain` for a row, as text."""
    return f"{'yes' if row['jax']['found'] else 'no'}, because {row['jax']['because']}"


def explain_missing_jax() -> str:
    """Returns why there is no JAX here, or none that can be imported; "" where there is."""
    jax, jaxlib = distributions.find("jax"), distributions.version("jaxlib")
    if jax is None:
        return "jax is not installed"
    if jaxlib is None:
        return "jaxlib is not installed"
    for name, clauses in requirements(jax):
        if name == "jaxlib" and not is_version_allowed(clauses, jaxlib):
            return f"jax {jax.version} requires jaxlib{clauses}, and jaxlib {jaxlib} is installed"
    return ""


def _find(row: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Returns how JAX finds a candidate, and the names that it may have there."""
    source, owner = row["source"], f"{row['distribution']} {row['version']}".strip()
    if row["state"] == NOT_ANNOUNCED:
        raise _NotFound(f"{owner} has no entry point, and {env_paths.VARIABLE} does not name it")
    if source == Source.ENVIRONMENT:
        return f"{env_paths.VARIABLE} names it", []
    if source == Source.REGISTERED:
        raise _NotFound("it was registered with plugrt, in this process")
    if not row["distribution"]:
        if source != Source.JAX:
            raise _NotFound(f"JAX does not look for {source}")
        return f"{row['value']} is a module of the namespace package {_GROUP}", []
    distribution = distributions.find(row["distribution"])
    if distribution is None:
        raise _NotFound(f"the metadata of {owner} cannot be found")
    offered = {
        value: name
        for name, value in entry_points(distribution, _GROUP)
        if source != Source.JAX or value == row["value"]
    } | dict.fromkeys(_namespace_modules(distribution), "")
    if not offered:
        own = vendors.find_extra(row["name"], "jax")
        own = f"; JAX has one of its own: {own}" if own else ""
        raise _NotFound(f"{owner} has no entry point in the group {_GROUP}{own}")
    for value in offered:
        _require_module(value)
    if _is_made_with_sdk(distribution):
        _require_sdk_core()
    by = " and ".join(offered)
    return f"{owner} has {by} in the group {_GROUP}", [name for name in offered.values() if name]


def _namespace_modules(distribution: Distribution) -> list[str]:
    """Returns the modules of the namespace package that are files of a distribution."""
    root = Path(distribution.location).parent
    found = []
    for file in distribution.files():
        parts = file.relative_to(root).parts if file.is_relative_to(root) else ()
        if len(parts) > 1 and parts[0] == _GROUP and file.suffix == ".py":
            found.append(f"{_GROUP}.{parts[1].removesuffix('.py')}")
    return [*dict.fromkeys(found)]


def _require_module(value: str) -> None:
    if ":" in value:
        raise _NotFound(
            f"its entry point names the object {value}, and JAX imports that text as a module"
        )
    top, *rest = value.split(".")
    try:
        spec, name = importlib.util.find_spec(top), top
        for part in rest:
            if spec is None:
                break
            name = f"{name}.{part}"
            spec = PathFinder.find_spec(name, list(spec.submodule_search_locations or ()))
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise _NotFound(f"the module {value} of its entry point is not there")


def _is_made_with_sdk(distribution: Distribution) -> bool:
    required = {name for name, _ in requirements(distribution)}
    return _SDK in {*map(normalise_name, required), normalise_name(distribution.name)}


def _require_sdk_core() -> None:
    """Raises where the part in C of plugrt-sdk is missing: JAX reaches Python through it."""
    spec = importlib.util.find_spec("plugrt_sdk")
    places = (spec and spec.submodule_search_locations) or ()
    if not any([*Path(place, "export").glob("_core.*so")] for place in places):
        version = distributions.version(_SDK)
        if version is None:
            raise _NotFound(f"{_SDK} is not installed")
        raise _NotFound(
            f"{_SDK} {version} is installed without its part in C, by which JAX reaches Python: "
            "the wheel that has it is for Linux, with the glibc of its manylinux tag or a later "
            "one, and for a Python with the GIL"
        )


def _refuse_broken(row: Mapping[str, object]) -> None:
    """Raises where the library, or the code that JAX would run, does not work."""
    same_code = row["source"] in (Source.JAX, Source.ENVIRONMENT)
    if row["state"] == State.BROKEN or (same_code and row["state"] == State.UNAVAILABLE):
        raise _NotFound(f"it is {row['state']}")


def _refuse_unselected(
    row: Mapping[str, Any],
    names: Collection[str],
    platforms: Sequence[str],
    aliases: Mapping[str, Sequence[str]],
) -> None:
    """Raises where ``JAX_PLATFORMS`` selects something else, or has to name it."""
    if platforms:
        if not any({name, *aliases.get(name, ())}.intersection(names) for name in platforms):
            raise _NotFound(f"JAX_PLATFORMS={','.join(platforms)} does not name it")
        return
    distribution = distributions.find(row["distribution"]) if row["distribution"] else None
    if distribution is None or not _is_made_with_sdk(distribution):
        return
    # plugrt_sdk.export.offer_to_jax registers these only where they are named.
    fault = "its priority is negative" if (row["priority"] or 0) < 0 else ""
    if row["state"] == State.UNAVAILABLE:
        fault = "it is unavailable"
    if fault:
        raise _NotFound(f"{fault}: it is offered to JAX only where JAX_PLATFORMS names it")
