"""Mutants of puts of views: of a dtype and of a form that is not contiguous."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mutants.puts import flip, put_changed
from plugrt.interface import HostBufferSemantics
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.conformance.checks.views import CHAPTER
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient

_PREFIX = f"{CHAPTER.prefix}."


def _wrong_view(dtype: str) -> Faults:
    """Returns a mutant that changes views of a dtype that are not contiguous."""
    return put_changed(
        lambda a: a.dtype.name == dtype and a.size and not a.flags.c_contiguous, flip
    )


def _wrong_order(dtype: str) -> Faults:
    """Returns a mutant that reads the other byte order as its own."""
    return put_changed(
        lambda a: not a.dtype.isnative and a.dtype.name == dtype,
        lambda a: a.view(a.dtype.newbyteorder()),
    )


def _alias(semantics: str, form: str) -> Faults:
    """Returns a mutant that keeps the caller's memory for one semantics, of one form."""

    def buffer_from_host(
        self: MutantClient, array: Any, device: Any, memory: Any = None,
        given: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> BackendBuffer:  # fmt: skip
        buffer = MutantClient.buffer_from_host(self, array, device, memory, given)
        is_whole = bool(np.asarray(array).flags.c_contiguous)
        if given.name.lower() == semantics and is_whole == (form == "whole"):
            buffer._handle = array
        return buffer

    return Faults(client={"buffer_from_host": buffer_from_host})


def _mutant(name: str) -> Faults:
    kind, _, rest = name.partition(".")
    if kind == "byte_order":
        return _wrong_order(rest)
    return _alias(*rest.split(".")) if kind == "changed" else _wrong_view(name)


MUTANTS: Mapping[str, Faults] = {
    check.id: _mutant(check.id.removeprefix(_PREFIX)) for check in CHAPTER
}
