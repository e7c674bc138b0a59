/* LastCall: the runner of a function's last call, for the next one with arguments of the same types.

   It is found without a key and its hash. Kept are calls whose static arguments last: the same object
   is always the same value. */
#include "calls/internal.h"

static LastCall *kept; /* all that have a runner, from the newest on */
static unsigned long long losses; /* how often a cache lost runners */

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
  losses++;
  while (call) { /* from the first one on again after one that was let go: Python may have run */
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
  PyObject *found = Py_NewRef(self->runner); /* another thread may keep another one meanwhile */
  int state = call_parts_match(self->parts, call, values);
  if (state == DONE) *runner = found;
  else Py_DECREF(found);
  return state;
}

int last_call_keep(LastCall *self, const Call *call, const Statics *statics, const FlatCall *flat,
                   PyObject *const *values, PyObject *const *avals, Py_ssize_t count,
                   PyObject *runners, PyObject *runner) {
  int again = self->candidate == runner && !self->runner;
  if (self->runner) last_call_forget(self);
  self->candidate = runner;
  if (!again) return 0; /* functions that are called with types in turn would pay each time */
  unsigned long long before = losses;
  CallParts *parts = call_parts_read(call, statics, values, avals, count);
  /* Python may have run since the call was flattened, in the hash of a key, in a finaliser or in
     another thread: a container was changed, and the runner is that of what was in it. */
  int same = parts && (!flat || is_same_flat_call(flat, call->args, call->kwargs, statics));
  int failed = PyErr_Occurred() && !drop_exception();
  /* It may have kept another one, or the cache lost this. */
  if (!same || failed || self->runner || losses != before) {
    call_parts_drop(parts);
    return failed ? -1 : 0;
  }
  self->parts = parts;
  self->token = Py_NewRef(call->token);
  self->runner = Py_NewRef(runner);
  self->runners = runners;
  self->after = kept;
  if (kept) kept->before = self;
  kept = self;
  return 0;
}
