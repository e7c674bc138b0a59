/* Lock: a reentrant lock, as threading.RLock.

   The core acquires and releases one without a Python call, which would be a tenth of the time of a
   small read. The GIL protects the owner field, so that an uncontended lock needs no lock of the
   system, which would be another tenth.

   A released lock is free, and the thread that has waited longest is woken: threads need not wait
   for each other's turn to run. If the woken thread finds the lock acquired again, the next release
   hands the lock to it. Otherwise threads that keep acquiring the lock could starve it.

   For any other kind of lock, the core calls its methods. */
#include "base/base.h"

static PyTypeObject *Lock_Type;
static PyObject *acquire_name, *release_name;

/* A waiting thread. It is not on the stack: a daemon thread may end in the wait, with the
   interpreter. */
typedef struct Waiter {
  unsigned long thread;
  PyThread_type_lock turn; /* locked until it is woken */
  int is_woken, is_late;   /* protected by the GIL, as all fields except `turn` */
  int has_it;
  struct Waiter *next;
} Waiter;

typedef struct {
  PyObject_HEAD
  unsigned long owner; /* the thread that owns the lock, if one does */
  Py_ssize_t count;
  Waiter *first;
} Lock;

static Waiter *waiter_new(unsigned long thread) {
  Waiter *made = PyMem_Malloc(sizeof *made);
  PyThread_type_lock turn = made ? PyThread_allocate_lock() : NULL;
  if (!turn) {
    PyMem_Free(made);
    PyErr_NoMemory();
    return NULL;
  }
  PyThread_acquire_lock(turn, WAIT_LOCK); /* does not block: the lock is new */
  *made = (Waiter){thread, turn, 0, 0, 0, NULL};
  return made;
}

static void waiter_free(Waiter *self) {
  PyThread_acquire_lock(self->turn, NOWAIT_LOCK); /* if a signal came when it was woken */
  PyThread_release_lock(self->turn);
  PyThread_free_lock(self->turn);
  PyMem_Free(self);
}

static Waiter **place_of(Lock *self, const Waiter *waiter) {
  Waiter **place = &self->first;
  while (*place != waiter) place = &(*place)->next;
  return place;
}

/* Wakes the first waiting thread of a free lock, and hands the lock to it if it was too late
   before. */
static void wake_first(Lock *self) {
  Waiter *first = self->first;
  if (!first) return;
  self->first = first->next;
  first->is_woken = 1;
  if (first->is_late) {
    self->owner = first->thread;
    self->count = first->has_it = 1;
  }
  PyThread_release_lock(first->turn);
}

/* Waits until this thread owns the lock; FAILED if a signal handler raises. */
static int wait_for_turn(Lock *self, Waiter *waiter) {
  Waiter **place = place_of(self, NULL);
  while (self->count && self->owner != waiter->thread) {
    PyLockStatus status;
    waiter->next = *place;
    waiter->is_woken = 0;
    *place = waiter;
    Py_BEGIN_ALLOW_THREADS
    status = PyThread_acquire_lock_timed(waiter->turn, -1, 1);
    Py_END_ALLOW_THREADS
    if (waiter->has_it) return DONE;
    if (waiter->is_woken) waiter->is_late = 1; /* if the lock is acquired again */
    /* a handler may wait for other threads that need the lock */
    else *place_of(self, waiter) = waiter->next;
    if (status != PY_LOCK_ACQUIRED) {
      PyThread_acquire_lock(waiter->turn, NOWAIT_LOCK); /* if it was woken as the signal came */
      /* else signal handlers run after the lock is acquired */
      if (self->count && Py_MakePendingCalls()) return FAILED;
    }
    place = &self->first;
  }
  self->owner = waiter->thread;
  self->count++;
  return DONE;
}

/* DONE; NOT_HERE if another thread owns the lock and `blocking` is 0. */
static int take_lock(Lock *self, int blocking) {
  unsigned long thread = PyThread_get_thread_ident();
  if (!self->count || self->owner == thread) {
    self->owner = thread;
    self->count++;
    return DONE;
  }
  if (!blocking) return NOT_HERE;
  Waiter *waiter = waiter_new(thread);
  if (!waiter) return FAILED;
  int state = wait_for_turn(self, waiter);
  waiter_free(waiter);
  return state;
}

static int drop_lock(Lock *self) {
  if (!self->count || self->owner != PyThread_get_thread_ident()) {
    PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
    return FAILED;
  }
  if (!--self->count) wake_first(self);
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
  return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
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
  Py_ssize_t waiting = 0;
  for (const Waiter *waiter = self->first; waiter; waiter = waiter->next) waiting++;
  return PyUnicode_FromFormat("<plugrt._core.Lock owner=%lu count=%zd waiting=%zd>",
                              self->count ? self->owner : 0, self->count, waiting);
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
