"""A handler in C with stages and a state, compiled for a test: it counts how they are called."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from pathlib import Path
from typing import Any

from plugrt import ffi

SOURCE = r"""
#include "xla/ffi/api/c_api.h"
#include <stdlib.h>
#include <string.h>

XLA_FFI_TypeId state_id, other_id;
int counts[5]; /* of the four stages, and of states that were deleted */
static void delete_state(void *state) { counts[4]++; free(state); }
XLA_FFI_TypeInfo state_info = {XLA_FFI_TypeInfo_STRUCT_SIZE, NULL, delete_state};
XLA_FFI_TypeInfo short_info = {8, NULL, delete_state};

static XLA_FFI_Error *fail(XLA_FFI_CallFrame *frame, const char *text) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, text,
                                    XLA_FFI_Error_Code_INVALID_ARGUMENT};
  return frame->api->XLA_FFI_Error_Create(&args);
}

static int is_question(XLA_FFI_CallFrame *frame) {
  XLA_FFI_Metadata_Extension *asked = (XLA_FFI_Metadata_Extension *)frame->extension_start;
  if (asked == NULL || asked->extension_base.type != XLA_FFI_Extension_Metadata)
    return 0;
  asked->metadata->api_version = frame->api->api_version; /* it knows 0.2 and 0.3, see `state` */
  return 1;
}

/* Sets or gets the state of the stage 'instantiate': before 0.3 the arguments named no stage. */
static XLA_FFI_Error *state(XLA_FFI_CallFrame *frame, int stage, int set, XLA_FFI_TypeId *id,
                            void **state) {
  struct { size_t size; void *next, *ctx; XLA_FFI_TypeId *id; void *state; } old = {
      sizeof old, NULL, frame->ctx, id, *state};
  XLA_FFI_State_Set_Args args = {XLA_FFI_State_Set_Args_STRUCT_SIZE, NULL, frame->ctx, stage, id,
                                 *state};
  void *given = frame->api->api_version.minor_version < 3 ? (void *)&old : (void *)&args;
  XLA_FFI_Error *error = set ? frame->api->XLA_FFI_State_Set(given)
                             : frame->api->XLA_FFI_State_Get(given);
  *state = given == &old ? old.state : args.state;
  return error;
}

static void *attribute(XLA_FFI_CallFrame *frame, const char *name) {
  for (int64_t i = 0; i < frame->attrs.size; i++)
    if (frame->attrs.names[i]->len == strlen(name) &&
        memcmp(frame->attrs.names[i]->ptr, name, strlen(name)) == 0)
      return ((XLA_FFI_Scalar *)frame->attrs.attrs[i])->value;
  return NULL;
}

/* The state is the attribute `factor`; below 0 that is an error. */
XLA_FFI_Error *instantiate(XLA_FFI_CallFrame *frame) {
  if (is_question(frame))
    return NULL;
  if (frame->stage != XLA_FFI_ExecutionStage_INSTANTIATE || frame->args.size != 0)
    return fail(frame, "this is not the stage 'instantiate'");
  counts[frame->stage]++;
  float *factor = attribute(frame, "factor"), *made = malloc(sizeof *made);
  *made = *factor;
  if (*factor < 0) {
    free(made);
    return fail(frame, "the factor is negative");
  }
  void *given = made;
  XLA_FFI_Error *error = state(frame, frame->stage, 1, &state_id, &given);
  if (error != NULL)
    free(made);
  else if (attribute(frame, "twice") != NULL)
    error = state(frame, frame->stage, 1, &state_id, &given);
  else if (attribute(frame, "of_prepare") != NULL)
    error = state(frame, XLA_FFI_ExecutionStage_PREPARE, 1, &state_id, &given);
  return error;
}

static XLA_FFI_Error *between(XLA_FFI_CallFrame *frame, int stage) {
  if (is_question(frame))
    return NULL;
  int others = counts[XLA_FFI_ExecutionStage_INITIALIZE];
  if (stage == XLA_FFI_ExecutionStage_INITIALIZE)
    others = counts[XLA_FFI_ExecutionStage_PREPARE] - 1;
  if (frame->stage != stage || counts[stage]++ != others)
    return fail(frame, "the stages are called in another order");
  float *made = malloc(sizeof *made);
  *made = 1;
  void *given = made;
  return state(frame, stage, 1, &state_id, &given);
}
XLA_FFI_Error *prepare(XLA_FFI_CallFrame *frame) {
  return between(frame, XLA_FFI_ExecutionStage_PREPARE);
}
XLA_FFI_Error *initialize(XLA_FFI_CallFrame *frame) {
  return between(frame, XLA_FFI_ExecutionStage_INITIALIZE);
}

/* y = state * x, and what 'prepare' and 'initialize' made, if they were called. */
XLA_FFI_Error *execute(XLA_FFI_CallFrame *frame) {
  if (is_question(frame))
    return NULL;
  counts[XLA_FFI_ExecutionStage_EXECUTE]++;
  void *factor = NULL, *one = NULL;
  XLA_FFI_TypeId *asked = attribute(frame, "other") != NULL ? &other_id : &state_id;
  XLA_FFI_Error *error = state(frame, XLA_FFI_ExecutionStage_INSTANTIATE, 0, asked, &factor);
  float added = 0;
  for (int stage = 1; stage < 3 && error == NULL && counts[stage] != 0; stage++) {
    error = state(frame, stage, 0, &state_id, &one);
    if (error == NULL)
      added += *(float *)one;
  }
  if (error != NULL)
    return error;
  XLA_FFI_Buffer *x = frame->args.args[0], *y = frame->rets.rets[0];
  for (int64_t i = 0; i < x->dims[0]; i++)
    ((float *)y->data)[i] = *(float *)factor * ((float *)x->data)[i] + added;
  return NULL;
}
"""
_numbers = itertools.count()
STAGES = ("instantiate", "prepare", "initialize", "execute")


class StagedLibrary:
    """The compiled handler, whose types and counts are its own."""

    def __init__(self, folder: Path) -> None:
        name = f"staged{next(_numbers)}"
        (folder / f"{name}.c").write_text(SOURCE)
        command = ["cc", "-shared", "-fPIC", "-O0", f"-I{ffi.include_dir()}", f"{name}.c"]
        subprocess.run([*command, "-o", f"{name}.so"], cwd=folder, check=True)
        self.library = ctypes.CDLL(str(folder / f"{name}.so"))
        self.name = f"plugrt_{folder.name}_{name}"
        """A name that no other handler and no other type has."""

    @property
    def counts(self) -> list[int]:
        """How often each stage was called, and how many states were deleted."""
        return list((ctypes.c_int * 5).in_dll(self.library, "counts"))

    def address(self, name: str) -> int:
        """Returns the address of a function or a variable."""
        return ctypes.addressof(ctypes.c_char.in_dll(self.library, name))

    def capsule(self, name: str) -> Any:
        """Returns a PyCapsule of a function or a variable."""
        return ffi.pycapsule(ctypes.c_void_p(self.address(name)))

    def stages(self, *names: str) -> dict[str, Any]:
        """Returns the handler in the form of ``jax.ffi``: all stages, or the named ones."""
        return {name: self.capsule(name) for name in names or STAGES}

    def registration(self, type_id: str = "state_id") -> dict[str, Any]:
        """Returns a type in the form of ``jax.ffi``."""
        return {"type_id": self.capsule(type_id), "type_info": self.capsule("state_info")}
