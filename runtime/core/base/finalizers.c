/* Finalizers, and the exceptions of signal handlers that run in them.

   Python discards exceptions of finalizers, and may call a signal handler at any line of a
   finalizer in the main thread. Here such an exception is kept and the interrupted work is done
   again. A pending call then raises the exception as soon as the main thread runs Python code
   outside of finalizers.

   Work that is not possible at once (in a garbage collection, in a function that a library calls,
   or near the recursion limit) is added to a list. The next call of plugrt empties the list. */
#include "base/internal.h"

enum { ATTEMPTS = 100 };

typedef struct {
  PyObject_HEAD
  PyObject *work;
} End;

static PyTypeObject *End_Type;
static PyObject *pending;  /* tuples of a function, its arguments, and an object that it needs */
static PyObject *raised;   /* exceptions for the main thread */
/* whether garbage is being collected; the state of each thread */
static PyObject *collecting, *here;
/* calls itself, to test whether the recursion limit allows calls */
static PyObject *descend;
static PyObject *is_interruption;     /* whether a signal handler raised an exception */
static PyObject *collecting_name, *depth_name;
static unsigned long main_thread;
static int under_way; /* nesting depth of finalizers in the main thread */
static int is_scheduled, has_stopped;

int is_main(void) { return PyThread_get_thread_ident() == main_thread; }

static int is_so_here(PyObject *name) {
  PyObject *value = PyObject_GetAttr(here, name);
  int answer = value ? PyObject_IsTrue(value) : 0;
  if (!value) PyErr_Clear();
  Py_XDECREF(value);
  return answer;
}

int is_in_callback(void) { return here && is_so_here(depth_name); }

static int must_wait(void) {
  return is_in_callback() || (collecting && PyList_Size(collecting) && is_so_here(collecting_name));
}

static void schedule(void);

static int raise_next(void *unused) {
  (void)unused;
  is_scheduled = 0;
  if (under_way || !PyList_Size(raised)) return 0; /* the end of the finalizer schedules it again */
  PyObject *error = Py_NewRef(PyList_GetItem(raised, 0));
  PyList_SetSlice(raised, 0, 1, NULL);
  schedule();
  raise_exception(error);
  return -1;
}

static void schedule(void) {
  if (!under_way && !is_scheduled && PyList_Size(raised))
    is_scheduled = !Py_AddPendingCall(raise_next, NULL);
}

/* Whether a signal handler raised it. Another exception of a signal handler, raised meanwhile, is
   kept as well. */
static int came_of_signal(PyObject *error) {
  if (!PyErr_GivenExceptionMatches(error, PyExc_Exception)) return 1;
  PyObject *answer = PyObject_CallFunctionObjArgs(is_interruption, error, NULL);
  if (answer) {
    Py_DECREF(answer);
    return answer == Py_True;
  }
  if (PyErr_ExceptionMatches(PyExc_RecursionError)) return PyErr_Clear(), 0;
  Raised second = set_aside();
  PyObject *value = raised_value(&second);
  if (value) PyList_Append(raised, value);
  Py_XDECREF(value);
  drop_raised(second);
  return 1;
}

int deliver(PyObject *where) {
  if (!is_main() || !raised) return PyErr_WriteUnraisable(where), 0;
  under_way++;
  Raised found = set_aside();
  PyObject *error = raised_value(&found);
  int is_wanted = error && came_of_signal(error);
  if (is_wanted) {
    PyList_Append(raised, error);
    drop_raised(found);
  } else {
    PyErr_Restore(found.type, found.value, found.traceback);
    PyErr_WriteUnraisable(where);
  }
  Py_XDECREF(error);
  under_way--;
  schedule();
  return is_wanted;
}

static void put_off(PyObject *function, PyObject *arguments, PyObject *keep) {
  PyObject *item = PyTuple_Pack(3, function, arguments ? arguments : Py_None, keep ? keep : Py_None);
  if (!item || PyList_Append(pending, item)) PyErr_WriteUnraisable(function);
  Py_XDECREF(item);
  note_change(); /* so that the next call runs `finish_pending` */
}

/* Whether the recursion limit allows some more calls. */
static int has_room(void) {
  if (!descend) return 1;
  PyObject *answer = PyObject_CallNoArgs(descend);
  Py_XDECREF(answer);
  if (answer) return 1;
  if (!PyErr_ExceptionMatches(PyExc_RecursionError)) return deliver(descend), 1;
  PyErr_Clear();
  return 0;
}

static void run(PyObject *function, PyObject *arguments, PyObject *keep) {
  int counted = is_main();
  under_way += counted;
  int again = has_room();
  if (!again) put_off(function, arguments, keep);
  for (int attempts = ATTEMPTS; again && attempts--;) {
    PyObject *answer = PyObject_CallObject(function, arguments);
    Py_XDECREF(answer);
    again = !answer && deliver(function);
  }
  under_way -= counted;
  if (counted) schedule();
}

void finish(PyObject *function, PyObject *arguments, PyObject *keep) {
  if (has_stopped) return;
  Raised before = set_aside();
  if (must_wait()) put_off(function, arguments, keep);
  else run(function, arguments, keep);
  PyErr_Restore(before.type, before.value, before.traceback);
}

int is_pending(void) { return pending && PyList_Size(pending) > 0; }

void finish_pending(void) {
  Py_ssize_t left = pending ? PyList_Size(pending) : 0;
  if (!left || must_wait()) return;
  Raised before = set_aside();
  while (left-- && PyList_Size(pending)) {
    PyObject *item = Py_NewRef(PyList_GetItem(pending, 0));
    PyList_SetSlice(pending, 0, 1, NULL);
    PyObject *arguments = PyTuple_GetItem(item, 1);
    run(PyTuple_GetItem(item, 0), arguments == Py_None ? NULL : arguments, PyTuple_GetItem(item, 2));
    Py_DECREF(item);
  }
  PyErr_Restore(before.type, before.value, before.traceback);
}

static PyObject *end_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"work", NULL};
  PyObject *work;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", names, &work)) return NULL;
  End *made = (End *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (made) made->work = Py_NewRef(work);
  return (PyObject *)made;
}

static int end_traverse(End *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->work);
  return 0;
}

/* In garbage this runs before the objects that the work needs are cleared. */
static void end_finalize(PyObject *object) {
  End *self = (End *)object;
  PyObject *work = self->work;
  self->work = NULL;
  if (work) finish(work, NULL, NULL);
  Py_XDECREF(work);
}

static void end_dealloc(PyObject *object) {
  PyObject_GC_UnTrack(object);
  end_finalize(object);
  free_object(object);
}

static PyType_Slot end_slots[] = {
    {Py_tp_doc, "End(work): calls work() when this ends: at once, or before the next call of plugrt."},
    {Py_tp_new, end_new},
    {Py_tp_traverse, end_traverse},
    {Py_tp_finalize, end_finalize},
    {Py_tp_dealloc, end_dealloc},
    {0, NULL},
};
static PyType_Spec end_spec = {"plugrt._core.End", sizeof(End), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, end_slots};

PyObject *call_pending(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  finish_pending();
  Py_RETURN_NONE;
}

PyObject *stop_finalizers(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  has_stopped = 1;
  Py_RETURN_NONE;
}

PyObject *set_finalizer_hooks(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *running, *local, *call, *ask;
  if (!PyArg_ParseTuple(args, "OOOOk", &running, &local, &call, &ask, &main_thread)) return NULL;
  collecting = Py_NewRef(running); /* all kept for ever, as the classes are */
  here = Py_NewRef(local);
  descend = Py_NewRef(call);
  is_interruption = Py_NewRef(ask);
  Py_RETURN_NONE;
}

int add_finalizers(PyObject *module) {
  collecting_name = PyUnicode_InternFromString("collecting");
  depth_name = PyUnicode_InternFromString("depth");
  pending = PyList_New(0);
  raised = PyList_New(0);
  if (!collecting_name || !depth_name || !pending || !raised) return -1;
  End_Type = type_of(module, &end_spec);
  return End_Type ? 0 : -1;
}
