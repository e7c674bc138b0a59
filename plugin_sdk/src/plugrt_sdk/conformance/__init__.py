"""The conformance kit: checks of PJRT plugins, which run in child processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrt_sdk.lazy_names import names_from

if TYPE_CHECKING:
    from plugrt_sdk.conformance.check import Chapter, Level, Needs
    from plugrt_sdk.conformance.pytest_suite import PluginSuite
    from plugrt_sdk.conformance.subject import PluginSubject

__all__ = [
    "Chapter",
    "Level",
    "Needs",
    "PluginSubject",
    "PluginSuite",
]

_HOMES = {
    **dict.fromkeys(("Chapter", "Level", "Needs"), "plugrt_sdk.conformance.check"),
    "PluginSubject": "plugrt_sdk.conformance.subject",
    "PluginSuite": "plugrt_sdk.conformance.pytest_suite",  # imports pytest
}

if not TYPE_CHECKING:
    __getattr__ = names_from(__name__, _HOMES)
