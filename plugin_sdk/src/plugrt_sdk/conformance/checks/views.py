"""Level 1: arrays of every dtype in every form: 0-d, empty, large, strided, other byte order."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np

from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import supported_dtypes
from plugrt.errors import PlugrtError, describe
from plugrt.interface import HostBufferSemantics
from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.checks.puts import put_and_get, put_on_one
from plugrt_sdk.conformance.expect import expect, expect_same_bits
from plugrt_sdk.conformance.inputs import fill, views
from plugrt_sdk.conformance.subject import PluginSubject

CHAPTER = Chapter("buffers.views", Level.BUFFERS, "PJRT_Client_BufferFromHostBuffer")

_LARGE = (129, 1031)
"""Larger than one transfer; no tile size divides a dimension."""


def _try_views(subject: PluginSubject, dtype: str) -> None:
    random = subject.random(f"views.{dtype}")
    try:
        put_and_get(subject, fill(dtype, (4, 3, 6), random))
    except PlugrtError as error:
        stated = subject.states("dtypes") and dtype in subject.declared.dtypes
        expect(not stated, f"{dtype}, which is declared", f"it was refused: {describe(error)}")
        raise
    for i, (words, view) in enumerate(views(dtype, random)):
        put_on_one(subject, view, i, f"the array {words},")
    put_and_get(subject, fill(dtype, _LARGE, random))


for _dtype in sorted(supported_dtypes(API_MINOR) - {"void"}):
    CHAPTER.add(
        f"{_dtype}",
        f"Arrays of {_dtype} of 0 to 8 dimensions that are whole, empty, permuted, strided, read "
        "backwards, broadcast and large come back as they were put.",
        partial(_try_views, dtype=_dtype), refusable=True,
        why=f"views of {_dtype} arrive scrambled, although whole arrays arrive",
    )  # fmt: skip


def _other_order(subject: PluginSubject, dtype: str) -> None:
    native = fill(dtype, (3, 5), subject.random(f"order.{dtype}"))
    swapped = native.astype(native.dtype.newbyteorder())
    expect_same_bits(subject.put(swapped).to_host(), native, f"the array of {swapped.dtype.str}")
    expect_same_bits(subject.put(swapped.T).to_host(), native.T, "its transpose")


_WIDE = (
    "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
for _dtype in _WIDE:
    CHAPTER.add(
        f"byte_order.{_dtype}",
        f"Arrays of {_dtype} in the other byte order come back with their values.",
        partial(_other_order, dtype=_dtype), refusable=True,
        why="files of another machine arrive as other numbers",
    )  # fmt: skip


def _changed(subject: PluginSubject, semantics: HostBufferSemantics, form: str) -> None:
    """Changes a view's memory at the first moment that the host buffer semantics allow."""
    device = subject.client.addressable_devices()[0]
    memory = np.arange(24_000, dtype=np.float32).reshape(40, 30, 20)
    view = memory if form == "whole" else memory[::2].T
    wanted = view.copy()
    buffer = subject.client.buffer_from_host(view, device, None, semantics)
    if semantics is HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES:
        buffer.ready_event().wait()
    memory[:] = -1
    expect_same_bits(buffer.to_host(), wanted, "the array, when its source has changed,")
    expect_same_bits(buffer.to_host(), wanted, "the array, when it is read again,")


for _semantics, _form in itertools.product(list(HostBufferSemantics)[:2], ("whole", "view")):
    _when = "when the transfer is done" if _semantics else "when the call returns"
    CHAPTER.add(
        f"changed.{_semantics.name.lower()}.{_form}",
        f"A {_form if _form == 'view' else 'whole array'} whose memory changes {_when}, as "
        f"{_semantics.name} allows, is on the device as it was.",
        partial(_changed, semantics=_semantics, form=_form), rests_on="PJRT_HostBufferSemantics",
        why="arrays change when the host reuses its memory",
    )  # fmt: skip
