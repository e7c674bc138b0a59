/* FunctionLauncher: launches a program with functions of its backend. It is for backends whose
   runtime has its own objects and functions instead of a PJRT library. */
#include "launches/internal.h"
#include "arrays/arrays.h"

typedef struct {
  Launching head;
  PyObject *launch;         /* launch(list of arguments) */
  /* take(result of `launch`, …): the sequence of results; NULL: `launch` returns it */
  PyObject *take;
  PyObject *taking[2];      /* its further arguments, NULL after the last */
  PyObject *argument_class; /* class of the arguments; NULL: any */
  PyObject *unless;         /* tuple: Python launches while one of these is not empty */
  PyObject *explain;        /* explain(error, arguments): the exception to raise; NULL: the error */
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
  /* the usual case: no Python code runs between these lines, which could change the list */
  if (PyList_CheckExact(made)) {
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

void explain_launch(PyObject *explain, PyObject *given) {
  PyObject *error = take_exception();
  if (!error) return;
  PyObject *found = PyObject_CallFunctionObjArgs(explain, error, given, NULL);
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
                  PyObject **results, PyObject **wait) {
  (void)wait; /* this launcher returns none */
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
  int state = made ? donated_end(&self->head.donated, arguments, count) : FAILED;
  if (state == DONE) state = tidy_up(self->tidy, &self->launches);
  if (state == DONE) state = set_results(self, made, results);
  Py_XDECREF(made);
  if (state == FAILED && self->explain) explain_launch(self->explain, given);
  Py_DECREF(given);
  return state;
}

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
  if (donated && donated_init(&self->head.donated, donated, PY_SSIZE_T_MAX, is_deleted, delete)) return -1;
  Py_ssize_t further = PyTuple_Size(taking);
  PyObject *kept[] = {launching,
                      none_as_null(take),
                      further > 0 ? PyTuple_GetItem(taking, 0) : NULL,
                      further > 1 ? PyTuple_GetItem(taking, 1) : NULL,
                      none_as_null(argument_class),
                      unless,
                      none_as_null(explaining),
                      none_as_null(tidy)};
  keep_objects(&self->head, kept, 8);
  self->head.produced = produced;
  self->head.waits_for_uses = waits;
  self->head.launch = launch;
  return 0;
}

int add_function_launcher(PyObject *module) {
  return add_launching(module, "plugrt._core.FunctionLauncher",
                       "Launches a program through functions that its backend gives; runners call it.",
                       sizeof(FunctionLauncher), (initproc)function_launcher_init, 0);
}
