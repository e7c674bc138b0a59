/* Lock: a lock that its thread may acquire again, as threading.RLock.

   The core acquires and releases one without a call, which takes a tenth of a small read. Of any
   other lock it calls the methods. */
#include "core.h"

static PyTypeObject *Lock_Type;
static PyObject *acquire_name, *release_name;

typedef struct {
  PyObject_HEAD
  PyThread_type_lock lock;
  unsigned long owner; /* these two, with the GIL alone: of the thread that has the lock, where one has */
  Py_ssize_t count;
} Lock;

/* Waits for another thread, and has signals handled meanwhile. */
static int wait_for_lock(Lock *self) {
  for (;;) {
    PyLockStatus status;
    Py_BEGIN_ALLOW_THREADS
    status = PyThread_acquire_lock_timed(self->lock, -1, 1);
    Py_END_ALLOW_THREADS
    if (status == PY_LOCK_ACQUIRED) return DONE;
    if (Py_MakePendingCalls()) return FAILED;
  }
}

/* DONE; NOT_HERE where another thread has it and this one is not to wait. */
static int take_lock(Lock *self, int blocking) {
  unsigned long thread = PyThread_get_thread_ident();
  if (self->count && self->owner == thread) {
    self->count++;
    return DONE;
  }
  int state = PyThread_acquire_lock(self->lock, NOWAIT_LOCK) ? DONE : NOT_HERE;
  if (state == NOT_HERE && blocking) state = wait_for_lock(self);
  if (state == DONE) {
    self->owner = thread;
    self->count = 1;
  }
  return state;
}

static int drop_lock(Lock *self) {
  if (!self->count || self->owner != PyThread_get_thread_ident()) {
    PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
    return FAILED;
  }
  if (!--self->count) PyThread_release_lock(self->lock);
  return DONE;
}

static int call_lock(PyObject *lock, PyObject *method) {
  PyObject *answer = PyObject_CallMethodObjArgs(lock, method, NULL);
  Py_XDECREF(answer);
  return answer ? DONE : FAILED;
}

int acquire_lock(PyObject *lock) {
  return Py_TYPE(lock) == Lock_Type ? take_lock((Lock *)lock, 1) : call_lock(lock, acquire_name);
}

int release_lock(PyObject *lock) {
  return Py_TYPE(lock) == Lock_Type ? drop_lock((Lock *)lock) : call_lock(lock, release_name);
}

static PyObject *lock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  if (PyTuple_Size(args) || (kwargs && PyDict_Size(kwargs))) {
    PyErr_SetString(PyExc_TypeError, "a lock is made without arguments");
    return NULL;
  }
  Lock *made = (Lock *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!made) return NULL;
  made->lock = PyThread_allocate_lock();
  if (made->lock) return (PyObject *)made;
  Py_DECREF((PyObject *)made);
  return PyErr_NoMemory();
}

static void lock_dealloc(PyObject *object) {
  Lock *self = (Lock *)object;
  if (self->count) PyThread_release_lock(self->lock);
  if (self->lock) PyThread_free_lock(self->lock);
  free_object(object);
}

static PyObject *lock_acquire(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"blocking", NULL};
  int blocking = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p", names, &blocking)) return NULL;
  int state = take_lock((Lock *)self, blocking);
  return state == FAILED ? NULL : PyBool_FromLong(state);
}

static PyObject *lock_enter(PyObject *self, PyObject *unused) {
  (void)unused;
  return take_lock((Lock *)self, 1) == FAILED ? NULL : Py_NewRef(Py_True);
}

static PyObject *lock_release(PyObject *self, PyObject *unused) {
  (void)unused;
  return drop_lock((Lock *)self) == FAILED ? NULL : Py_NewRef(Py_None);
}

static PyObject *lock_repr(PyObject *object) {
  const Lock *self = (Lock *)object;
  return PyUnicode_FromFormat("<plugrt._core.Lock owner=%lu count=%zd>", self->count ? self->owner : 0,
                              self->count);
}

static PyMethodDef lock_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))lock_acquire, METH_VARARGS | METH_KEYWORDS,
     "acquire(blocking=True): whether the lock is this thread's now."},
    {"release", lock_release, METH_NOARGS, "Gives up one acquisition of this thread."},
    {"__enter__", lock_enter, METH_NOARGS, "As acquire()."},
    {"__exit__", lock_release, METH_VARARGS, "As release()."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot lock_slots[] = {
    {Py_tp_doc, "A lock that its thread may acquire again, as threading.RLock."},
    {Py_tp_new, lock_new},
    {Py_tp_dealloc, lock_dealloc},
    {Py_tp_repr, lock_repr},
    {Py_tp_methods, lock_methods},
    {0, NULL},
};
static PyType_Spec lock_spec = {"plugrt._core.Lock", sizeof(Lock), 0, Py_TPFLAGS_DEFAULT, lock_slots};

int add_lock(PyObject *module) {
  if (!acquire_name) acquire_name = PyUnicode_InternFromString("acquire");
  if (!release_name) release_name = PyUnicode_InternFromString("release");
  if (!acquire_name || !release_name) return -1;
  Lock_Type = type_of(module, &lock_spec);
  return Lock_Type ? 0 : -1;
}
