"""`StagedHandler`: a handler in C with stages and state, called by a backend in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from plugrt.capi.extensions.ffi_frames import call_stage, require_frames
from plugrt.capi.extensions.ffi_states import (
    EXECUTE,
    INITIALIZE,
    INSTANTIATE,
    PREPARE,
    STAGES,
    Context,
    States,
)
from plugrt.errors import Unimplemented
from plugrt.interface import Handler, HandlerStages
from plugrt.native.finalizers import End


class StagedHandler:
    """The C functions of a handler's stages; a backend makes an instance for each custom call.

    Raises `Unimplemented` if one is compiled for a version of XLA's FFI with other frames.
    """

    def __init__(self, target: str, stages: HandlerStages) -> None:
        self.target = target
        self.stages = stages
        for name in STAGES:
            address = getattr(stages, name)
            if address is not None:
                require_frames(target, address)

    def __call__(
        self,
        arguments: Sequence[npt.NDArray[Any]],
        results: Sequence[npt.NDArray[Any]],
        attributes: Mapping[str, object],
    ) -> None:
        """Raises `Unimplemented`: only an instance can be executed."""
        raise Unimplemented(
            f"the handler of {self.target!r} has stages before 'execute', and the backend executes "
            "it without them. Fix, in its compile: plugrt_sdk.instantiate(handler, attributes), "
            "and call what that returns"
        )

    def instantiate(self, attributes: Mapping[str, object]) -> Handler:
        """Runs the stage 'instantiate' and returns the handler for one call in an executable.

        Its state is deleted with the returned handler. Raises the error that the C function
        returns.
        """
        return _Instance(self, attributes)


class _Instance:
    """A handler for one call in an executable: its later stages find the state of the first."""

    def __init__(self, handler: StagedHandler, attributes: Mapping[str, object]) -> None:
        self._target, self._stages = handler.target, handler.stages
        self._states = States()
        self._end = End(self._states.delete)
        if self._stages.instantiate is not None:
            context = Context(self._target, INSTANTIATE, self._states, self._states)
            call_stage(self._stages.instantiate, context, (), (), attributes)

    def __call__(
        self,
        arguments: Sequence[npt.NDArray[Any]],
        results: Sequence[npt.NDArray[Any]],
        attributes: Mapping[str, object],
    ) -> None:
        """Runs the stages of a launch in their order; raises the first error."""
        launch = States()
        try:
            for stage in (PREPARE, INITIALIZE, EXECUTE):
                address = getattr(self._stages, STAGES[stage])
                if address is not None:
                    context = Context(self._target, stage, self._states, launch)
                    call_stage(address, context, arguments, results, attributes)
        finally:
            launch.delete()
