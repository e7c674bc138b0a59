/* FunctionLauncher: launches a program through functions that its backend gives.

   For backends whose runtime is no PJRT library but has objects and functions of its own. */
#include "launches/internal.h"
#include "arrays/arrays.h"

PyTypeObject *FunctionLauncher_Type;

typedef struct {
  Launching head;
  PyObject *launch;         /* launch(list of arguments) */
  PyObject *take;           /* take(what it returned, …): the sequence of results; NULL: is that */
  PyObject *taking[2];      /* the further arguments of that, NULL after the last */
  PyObject *argument_class; /* the class of arguments that are launched with; NULL: any */
  PyObject *unless;         /* tuple: while one of these is not empty, Python launches */
  PyObject *explain;        /* explain(error, arguments): the exception to raise; NULL: the error */
  Donated donated;              /* the arguments that a launch takes */
  PyObject *tidy;           /* tidy(), as `tidy_up` calls it */
  unsigned launches;
} FunctionLauncher;

/* 1 if Python has to launch, -1 with an exception. */
static int is_left(FunctionLauncher *self, PyObject *const *arguments, Py_ssize_t count) {
  for (Py_ssize_t i = 0; self->argument_class && i < count; i++)
    if ((PyObject *)Py_TYPE(arguments[i]) != self->argument_class) return 1;
  return any_is_filled(self->unless);
}

static int set_results(FunctionLauncher *self, PyObject *made, PyObject **results) {
  Py_ssize_t produced = PySequence_Size(made);
  if (produced < 0) return FAILED;
  if (produced != self->head.produced) {
    PyErr_Format(PyExc_ValueError, "a launch gave %zd results where its program has %zd", produced,
                 self->head.produced);
    return FAILED;
  }
  if (PyList_CheckExact(made)) { /* the usual case: no Python runs between, which could change it */
    for (Py_ssize_t i = 0; i < produced; i++) results[i] = Py_NewRef(PyList_GetItem(made, i));
    return DONE;
  }
  for (Py_ssize_t i = 0; i < produced; i++) {
    results[i] = PySequence_GetItem(made, i);
    if (!results[i]) {
      while (i) Py_DECREF(results[--i]);
      return FAILED;
    }
  }
  return DONE;
}

static void explain(FunctionLauncher *self, PyObject *given) {
  PyObject *error = take_exception();
  if (!error) return;
  PyObject *found = PyObject_CallFunctionObjArgs(self->explain, error, given, NULL);
  Py_DECREF(error);
  if (!found) return;
  if (PyExceptionInstance_Check(found)) {
    raise_exception(found);
    return;
  }
  PyErr_Format(PyExc_TypeError, "the explanation of a launch's error is no exception: %R", found);
  Py_DECREF(found);
}

int tidy_up(PyObject *tidy, unsigned *launches) {
  enum { TIDY_AFTER = 1000 };
  if (!tidy || ++*launches % TIDY_AFTER) return DONE;
  PyObject *answer = PyObject_CallNoArgs(tidy);
  Py_XDECREF(answer);
  return answer ? DONE : FAILED;
}

static int launch(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                  PyObject **results) {
  FunctionLauncher *self = (FunctionLauncher *)object;
  int left = is_left(self, arguments, count);
  if (left) return left < 0 ? FAILED : NOT_HERE;
  PyObject *given = PyList_New(count);
  if (!given) return FAILED;
  for (Py_ssize_t i = 0; i < count; i++) PyList_SetItem(given, i, Py_NewRef(arguments[i]));
  PyObject *made = PyObject_CallFunctionObjArgs(self->launch, given, NULL);
  if (made && self->take) {
    PyObject *launched = made;
    made = PyObject_CallFunctionObjArgs(self->take, launched, self->taking[0], self->taking[1], NULL);
    Py_DECREF(launched);
  }
  int state = made ? donated_end(&self->donated, arguments, count) : FAILED;
  if (state == DONE) state = tidy_up(self->tidy, &self->launches);
  if (state == DONE) state = set_results(self, made, results);
  Py_XDECREF(made);
  if (state == FAILED && self->explain) explain(self, given);
  Py_DECREF(given);
  return state;
}

static PyObject *or_null(PyObject *object) { return object == Py_None ? NULL : Py_NewRef(object); }

static int function_launcher_init(FunctionLauncher *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"launch",         "results", "take",    "take_arguments",
                          "argument_class", "unless",  "explain", "donated",
                          "is_deleted",     "delete",  "tidy",    "waits_for_uses",
                          NULL};
  PyObject *launching, *take, *taking, *argument_class, *unless, *explaining;
  PyObject *donated = NULL, *is_deleted = Py_None, *delete = Py_None, *tidy = Py_None;
  int waits = 0;
  Py_ssize_t produced;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OnOO!OO!O|O!OOOp", names, &launching, &produced,
                                   &take, &PyTuple_Type, &taking, &argument_class, &PyTuple_Type,
                                   &unless, &explaining, &PyTuple_Type, &donated, &is_deleted,
                                   &delete, &tidy, &waits))
    return -1;
  if (self->launch || produced < 0) {
    PyErr_SetString(PyExc_TypeError, "a launcher is made once, of a program with results");
    return -1;
  }
  if (PyTuple_Size(taking) > 2) {
    PyErr_SetString(PyExc_ValueError, "what takes results has at most two further arguments");
    return -1;
  }
  if (donated && donated_init(&self->donated, donated, PY_SSIZE_T_MAX, is_deleted, delete)) return -1;
  for (Py_ssize_t i = 0; i < PyTuple_Size(taking); i++)
    self->taking[i] = Py_NewRef(PyTuple_GetItem(taking, i));
  self->launch = Py_NewRef(launching);
  self->take = or_null(take);
  self->argument_class = or_null(argument_class);
  self->unless = Py_NewRef(unless);
  self->explain = or_null(explaining);
  self->tidy = or_null(tidy);
  self->head.produced = produced;
  self->head.waits_for_uses = waits;
  self->head.launch = launch;
  return 0;
}

static int function_launcher_traverse(FunctionLauncher *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->launch);
  Py_VISIT(self->take);
  Py_VISIT(self->taking[0]);
  Py_VISIT(self->taking[1]);
  Py_VISIT(self->argument_class);
  Py_VISIT(self->unless);
  Py_VISIT(self->explain);
  Py_VISIT(self->tidy);
  return donated_visit(&self->donated, visit, arg);
}

/* No tp_clear: a call of a finaliser must work, and cycles lead through the functions, which can be
   cleared. */
static void function_launcher_dealloc(PyObject *object) {
  FunctionLauncher *self = (FunctionLauncher *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->launch);
  Py_XDECREF(self->take);
  Py_XDECREF(self->taking[0]);
  Py_XDECREF(self->taking[1]);
  Py_XDECREF(self->argument_class);
  Py_XDECREF(self->unless);
  Py_XDECREF(self->explain);
  Py_XDECREF(self->tidy);
  donated_drop(&self->donated);
  free_object(object);
}

static PyType_Slot function_launcher_slots[] = {
    {Py_tp_doc, "Launches a program through functions that its backend gives; runners call it."},
    {Py_tp_init, function_launcher_init},
    {Py_tp_traverse, function_launcher_traverse},
    {Py_tp_dealloc, function_launcher_dealloc},
    {0, NULL},
};
static PyType_Spec function_launcher_spec = {"plugrt._core.FunctionLauncher",
                                             sizeof(FunctionLauncher), 0,
                                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                             function_launcher_slots};

int add_function_launcher(PyObject *module) {
  FunctionLauncher_Type = type_of(module, &function_launcher_spec);
  return FunctionLauncher_Type ? 0 : -1;
}
