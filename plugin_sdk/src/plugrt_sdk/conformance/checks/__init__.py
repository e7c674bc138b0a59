"""The checks, a module each for what they are about; `CHAPTERS` is the order in which they run."""

from __future__ import annotations

from plugrt_sdk.conformance.check import Chapter
from plugrt_sdk.conformance.checks import (
    abi,
    accepts,
    ahead_of_time,
    arguments,
    behaviour,
    buffers,
    client,
    composites,
    declared,
    devices,
    events,
    executables,
    forms,
    host,
    operations,
    ownership,
    programs,
    puts,
    randomness,
    refusals,
    scales,
    topologies,
)

CHAPTERS: tuple[Chapter, ...] = (
    host.CHAPTER,
    abi.CHAPTER,
    arguments.CHAPTER,
    events.CHAPTER,
    client.CHAPTER,
    devices.CHAPTER,
    puts.CHAPTER,
    buffers.CHAPTER,
    programs.CHAPTER,
    forms.CHAPTER,
    refusals.CHAPTER,
    operations.CHAPTER,
    randomness.CHAPTER,
    composites.CHAPTER,
    ownership.CHAPTER,
    behaviour.CHAPTER,
    declared.CHAPTER,
    accepts.CHAPTER,
    executables.CHAPTER,
    topologies.CHAPTER,
    scales.CHAPTER,
    ahead_of_time.CHAPTER,
)
