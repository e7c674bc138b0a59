/* LastCall: keeps the runner of a function's last call, for the next call with arguments of the same
   types, which then needs no key and no hash. A call is kept only if each of its static arguments
   is lasting (`is_lasting`): the same object is always the same value. */
#include "calls/internal.h"

static LastCall *kept; /* list of all that have a runner, the newest first */

static void unlink_call(LastCall *self) {
  if (self->before) self->before->after = self->after;
  else kept = self->after;
  if (self->after) self->after->before = self->before;
  self->before = self->after = NULL;
}

void last_call_forget(LastCall *self) {
  self->candidate = NULL;
  if (!self->runner) return;
  unlink_call(self);
  PyObject *token = self->token, *runner = self->runner;
  CallParts *parts = self->parts;
  self->token = self->runner = NULL;
  self->parts = NULL;
  call_parts_drop(parts);
  Py_DECREF(token);
  Py_DECREF(runner);
}

int last_call_visit(LastCall *self, visitproc visit, void *arg) {
  if (!self->runner) return 0;
  Py_VISIT(self->token);
  Py_VISIT(self->runner);
  return call_parts_visit(self->parts, visit, arg);
}

PyObject *forget_runners(PyObject *module, PyObject *runners) {
  (void)module;
  LastCall *call = kept;
  while (call) { /* starts again after each one that was dropped: Python code may have run */
    if (call->runners != runners) {
      call = call->after;
    } else {
      last_call_forget(call);
      call = kept;
    }
  }
  Py_RETURN_NONE;
}

int last_call_find(const LastCall *self, const Call *call, PyObject **values, PyObject **runner) {
  if (self->token != call->token) return NOT_HERE;
  PyObject *found = Py_NewRef(self->runner); /* another thread may replace it meanwhile */
  int state = call_parts_match(self->parts, call, values);
  if (state == DONE) *runner = found;
  else Py_DECREF(found);
  return state;
}

int last_call_is_repeated(LastCall *self, PyObject *runner) {
  int again = self->candidate == runner && !self->runner;
  if (self->runner) last_call_forget(self);
  self->candidate = runner;
  return again; /* a function whose calls alternate between types would make parts at each call */
}

void last_call_keep(LastCall *self, PyObject *token, CallParts *parts, PyObject *runners,
                    PyObject *runner) {
  if (self->runner) last_call_forget(self); /* of a call that another thread made meanwhile */
  self->parts = parts;
  self->token = Py_NewRef(token);
  self->runner = Py_NewRef(runner);
  self->runners = runners;
  self->after = kept;
  if (kept) kept->before = self;
  kept = self;
}
