/* Runner: makes a call's result from its arguments with one launch. Its Python function makes the
   calls that it does not handle: with deleted arrays, with other kinds of values, or with a program
   that Python has to check first. */
#include "launches/internal.h"
#include "arrays/arrays.h"

static PyTypeObject *Runner_Type;
typedef struct {
  PyObject_HEAD
  Launching *launcher;
  PyObject *outputs;   /* the Outputs */
  PyObject *slow;      /* slow(values): does the same in Python */
  PyObject *explain;   /* explain(values, error): raises the exception for an error of the launch */
  Py_ssize_t arity;    /* number of arguments of the call */
  Py_ssize_t count;    /* number of arguments of the program, without constants */
  Py_ssize_t *kept;    /* their numbers */
  PyObject **puts;     /* puts or copies each of these, NULL for an array that is in place */
  int placed;          /* whether any of `puts` is set */
  PyObject *constants; /* captured constants that follow the arguments, a tuple of arrays */
  Py_ssize_t fed;      /* number of arguments and constants */
  Donation donation;   /* donated arguments */
} Runner;

/* Calls a function with the arguments of a call as a tuple, and another argument, if any. */
static PyObject *call_with(PyObject *function, PyObject *given, PyObject *const *values,
                           Py_ssize_t count, PyObject *more) {
  PyObject *all = given ? Py_NewRef(given) : tuple_of(values, count);
  PyObject *made = all ? PyObject_CallFunctionObjArgs(function, all, more, NULL) : NULL;
  Py_XDECREF(all);
  return made;
}

static PyObject *run_slowly(Runner *self, PyObject *given, PyObject *const *values) {
  return call_with(self->slow, given, values, self->arity, NULL);
}

static void explain(Runner *self, PyObject *given, PyObject *const *values) {
  PyObject *error = take_exception();
  if (!error) return;
  PyObject *answer = call_with(self->explain, given, values, self->arity, error);
  if (answer) { /* it always raises */
    Py_DECREF(answer);
    raise_exception(error);
    return;
  }
  Py_DECREF(error);
}

/* A new reference to an array's buffers, which another thread may delete meanwhile. NULL if it is
   not an array, or is deleted or donated. */
static PyObject *hold_array(PyObject *value) {
  if (Py_TYPE(value) != array_class) return NULL;
  PyObject *shards = ((Array *)value)->shards; /* NULL if donated, None if deleted */
  return shards == Py_None ? NULL : Py_XNewRef(shards);
}

/* Sets a new reference to each argument of the launch, NULL for those that are put later. */
static int hold(Runner *self, PyObject *const *values, PyObject **held) {
  Launching *launcher = self->launcher;
  Py_ssize_t all = self->count + self->fed, i = 0;
  memset(held, 0, all * sizeof *held);
  if (launcher->is_ready && !launcher->is_ready((PyObject *)launcher, all)) return NOT_HERE;
  for (; i < self->count; i++)
    if (!self->puts[i] && !(held[i] = hold_array(values[self->kept[i]]))) return NOT_HERE;
  for (; i < all; i++)
    if (!(held[i] = hold_array(PyTuple_GetItem(self->constants, i - self->count)))) return NOT_HERE;
  int state = DONE;
  /* once the other arguments are known to be usable */
  for (i = 0; self->placed && state == DONE && i < self->count; i++)
    if (self->puts[i]) state = device_put_value(self->puts[i], values[self->kept[i]], &held[i]);
  return state;
}

/* Launches with the held arguments. Once a launch is made, its donated arguments are gone, even if
   a later step fails. */
static int launch(Runner *self, PyObject *const *values, PyObject **held, PyObject **results,
                  PyObject **taken) {
  int alone = self->launcher->waits_for_uses;
  int state = donation_take(&self->donation, values, held, self->count + self->fed, alone, taken);
  if (state != DONE) return state;
  state = self->launcher->launch((PyObject *)self->launcher, held, self->count + self->fed, results, NULL);
  donation_end(&self->donation, values, taken, state == DONE);
  return state;
}

static PyObject *run(Runner *self, PyObject *given, PyObject *const *values, PyObject **room) {
  Py_ssize_t all = self->count + self->fed, produced = self->launcher->produced;
  PyObject **held = room, **results = held + all, **arrays = results + produced;
  PyObject **taken = arrays + outputs_count(self->outputs);
  int state = hold(self, values, held), passed = state == DONE;
  if (state == DONE) state = outputs_pass_on(self->outputs, values, arrays);
  if (state == DONE) state = launch(self, values, held, results, taken);
  if (self->placed) state = end_device_puts(self->puts, held, self->count, state, results, produced);
  if (state == DONE && outputs_wrap(self->outputs, results, produced, arrays)) state = FAILED;
  /* The destructor of a buffer may run Python code: the exception is set aside meanwhile. */
  for (Py_ssize_t i = all; i--;) Py_XDECREF(held[i]);
  if (state == DONE) return outputs_put_together(self->outputs, arrays);
  if (passed) outputs_drop(self->outputs, arrays);
  if (state == NOT_HERE) return run_slowly(self, given, values);
  explain(self, given, values);
  return NULL;
}

static PyObject *runner_run(PyObject *object, PyObject *given, PyObject *const *values, Py_ssize_t count) {
  Runner *self = (Runner *)object;
  if (count != self->arity) return call_with(self->slow, given, values, count, NULL);
  Py_ssize_t most = self->count + self->fed + self->launcher->produced +
                    outputs_count(self->outputs) + 2 * self->donation.count;
  PyObject *on_stack[3 * ON_STACK], **room = ROOM(on_stack, most);
  PyObject *made = room ? run(self, given, values, room) : NULL;
  if (room != on_stack) PyMem_Free(room);
  return made;
}

PyObject *run_any(PyObject *runner, PyObject *given, PyObject *const *values, Py_ssize_t count) {
  if (Py_TYPE(runner) == Runner_Type) return runner_run(runner, given, values, count);
  return call_with(runner, given, values, count, NULL);
}

static PyObject *runner_call(Runner *self, PyObject *args, PyObject *kwargs) {
  const char *text = self->launcher ? "a runner takes the flat arguments of the call alone"
                                    : "this runner was not made by its class";
  PyObject *given = only_argument(args, kwargs, self->launcher != NULL, text);
  if (!given) return NULL;
  Py_ssize_t count = PyTuple_Size(given);
  PyObject *on_stack[ON_STACK], **values = ROOM(on_stack, count);
  for (Py_ssize_t i = 0; values && i < count; i++) values[i] = PyTuple_GetItem(given, i);
  PyObject *made = values ? runner_run((PyObject *)self, given, values, count) : NULL;
  if (values != on_stack) PyMem_Free(values);
  Py_DECREF(given);
  return made;
}

static int runner_init(Runner *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"launcher", "arity",   "kept", "puts",    "constants", "donated",
                          "taker",    "outputs", "slow", "explain", NULL};
  PyObject *launcher, *kept, *puts, *constants, *donated, *taker, *outputs, *slow, *explain;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OnO!O!O!O!UO!OO", names, &launcher, &self->arity,
                                   &PyTuple_Type, &kept, &PyTuple_Type, &puts, &PyTuple_Type,
                                   &constants, &PyTuple_Type, &donated, &taker, Outputs_Type,
                                   &outputs, &slow, &explain))
    return -1;
  if (!is_launching(launcher)) {
    PyErr_Format(PyExc_TypeError, "a runner is made of a launcher of the core; got %R", launcher);
    return -1;
  }
  if (self->launcher || !((Launching *)launcher)->launch) {
    PyErr_SetString(PyExc_TypeError, "a runner is made once, of a launcher that is made");
    return -1;
  }
  self->count = read_numbers(kept, self->arity, &self->kept);
  if (self->count < 0 || donation_read(&self->donation, donated, self->arity, taker) ||
      !donation_is_among(&self->donation, self->kept, self->count, puts))
    return -1;
  self->fed = PyTuple_Size(constants);
  if (!outputs_fit(outputs, self->arity, ((Launching *)launcher)->produced)) {
    PyErr_SetString(PyExc_ValueError, "the outputs of a runner are not those of its launches");
    return -1;
  }
  if (read_device_puts(puts, self->count, &self->puts)) return -1;
  for (Py_ssize_t i = 0; i < self->count; i++) self->placed |= self->puts[i] != NULL;
  self->constants = Py_NewRef(constants);
  self->outputs = Py_NewRef(outputs);
  self->slow = Py_NewRef(slow);
  self->explain = Py_NewRef(explain);
  self->launcher = (Launching *)Py_NewRef(launcher);
  return 0;
}

static int runner_traverse(Runner *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->launcher);
  for (Py_ssize_t i = 0; self->puts && i < self->count; i++) Py_VISIT(self->puts[i]);
  Py_VISIT(self->outputs);
  Py_VISIT(self->constants);
  Py_VISIT(self->slow);
  Py_VISIT(self->explain);
  return 0;
}

/* No tp_clear: a call in a finalizer has to work. Each cycle leads through the functions, which can
   be cleared. */
static void runner_dealloc(PyObject *object) {
  Runner *self = (Runner *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->launcher);
  Py_XDECREF(self->outputs);
  Py_XDECREF(self->constants);
  Py_XDECREF(self->slow);
  Py_XDECREF(self->explain);
  for (Py_ssize_t i = 0; self->puts && i < self->count; i++) Py_XDECREF(self->puts[i]);
  PyMem_Free(self->puts);
  PyMem_Free(self->kept);
  donation_drop(&self->donation);
  free_object(object);
}

static PyType_Slot runner_slots[] = {
    {Py_tp_doc, "Runs a program: runner(flat arguments of a call) -> the pytree of its results."},
    {Py_tp_init, runner_init},
    {Py_tp_call, runner_call},
    {Py_tp_traverse, runner_traverse},
    {Py_tp_dealloc, runner_dealloc},
    {0, NULL},
};
static PyType_Spec runner_spec = {"plugrt._core.Runner", sizeof(Runner), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, runner_slots};

int add_runner(PyObject *module) {
  Runner_Type = type_of(module, &runner_spec);
  return Runner_Type ? 0 : -1;
}
