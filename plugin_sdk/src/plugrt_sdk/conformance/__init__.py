"""The conformance kit: what a PJRT plugin must do, tried in processes that may crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrt_sdk.lazy_names import names_from

if TYPE_CHECKING:
    from plugrt_sdk.conformance.pytest_suite import PluginSuite

__all__ = ["PluginSuite"]

if not TYPE_CHECKING:  # the kit's worker processes need no pytest
    __getattr__ = names_from(__name__, {"PluginSuite": "plugrt_sdk.conformance.pytest_suite"})
