/* BoundedLauncher: launches of a client that limits the number of launches in progress. It shares
   its lock and queue with plugrt.execution.executables.blocking_launches.BlockingLaunches. */
#include "launches/internal.h"
#include "arrays/arrays.h"

typedef struct {
  Launching head;
  Launching *inner;   /* makes the launches */
  /* of pairs: an object that waits for a launch, and whether the launch is collective */
  PyObject *queue;
  /* held while a launch is added to the queue; a finalizer may launch meanwhile */
  PyObject *lock;
  PyObject *exchanges; /* whether the devices of a launch wait for each other, a bool */
  PyObject *unless;    /* tuple: Python launches while one of these is not empty */
  Py_ssize_t bound;    /* the maximum number of launches in the queue */
} BoundedLauncher;

static PyObject *append_name, *popleft_name, *clear_name;

/* Calls a method of the queue, with the argument unless it is NULL. */
static int call(PyObject *queue, PyObject *method, PyObject *argument) {
  PyObject *answer = PyObject_CallMethodObjArgs(queue, method, argument, NULL);
  Py_XDECREF(answer);
  return answer ? DONE : FAILED;
}

/* Whether the queue has a collective launch; -1 with an exception. */
static int holds_collective(BoundedLauncher *self) {
  Py_ssize_t size = PyObject_Size(self->queue);
  int found = size < 0 ? -1 : 0;
  for (Py_ssize_t i = 0; i < size && !found; i++) {
    PyObject *pair = PySequence_GetItem(self->queue, i);
    PyObject *exchanges = pair ? PyTuple_GetItem(pair, 1) : NULL;
    found = exchanges ? exchanges == Py_True : -1;
    Py_XDECREF(pair);
  }
  return found;
}

/* Whether a pair is still the oldest. A finalizer or signal handler that launches, while this
   thread waits, may have removed it. -1 with an exception. */
static int is_oldest(BoundedLauncher *self, PyObject *pair) {
  Py_ssize_t size = PyObject_Size(self->queue);
  PyObject *first = size > 0 ? PySequence_GetItem(self->queue, 0) : NULL;
  if (size < 0 || (size && !first)) return -1;
  Py_XDECREF(first);
  return first == pair;
}

/* Waits for the oldest launch and removes it; then clears the queue if no collective launch is
   left. */
static int await_oldest(BoundedLauncher *self) {
  PyObject *pair = PySequence_GetItem(self->queue, 0);
  PyObject *wait = pair ? PyTuple_GetItem(pair, 0) : NULL;
  PyObject *answer = wait ? PyObject_CallNoArgs(wait) : NULL;
  int oldest = answer ? is_oldest(self, pair) : -1;
  Py_XDECREF(answer); /* before it is removed: an interrupt may end the wait */
  if (oldest == 1 && call(self->queue, popleft_name, NULL) == FAILED) oldest = -1;
  Py_XDECREF(pair);
  if (oldest < 1) return oldest < 0 ? FAILED : DONE;
  Py_ssize_t size = PyObject_Size(self->queue);
  int rest = size > 0 ? holds_collective(self) : 1;
  if (size < 0 || rest < 0) return FAILED;
  return rest ? DONE : call(self->queue, clear_name, NULL);
}

/* Waits until the queue has room: DONE. */
static int find_place(BoundedLauncher *self) {
  for (;;) {
    Py_ssize_t size = PyObject_Size(self->queue);
    if (size < 0) return FAILED;
    if (size < self->bound) return DONE;
    if (await_oldest(self) == FAILED) return FAILED;
  }
}

/* Adds a launch to the queue, unless the queue is empty and the launch is not collective. Steals
   the reference to `wait`. */
static int enqueue(BoundedLauncher *self, PyObject *wait) {
  Py_ssize_t size = self->exchanges == Py_True ? 1 : PyObject_Size(self->queue);
  PyObject *pair = size > 0 ? PyTuple_Pack(2, wait, self->exchanges) : NULL;
  int state = pair ? call(self->queue, append_name, pair) : size ? FAILED : DONE;
  Py_DECREF(wait);
  Py_XDECREF(pair);
  return state;
}

static int launch_in_turn(BoundedLauncher *self, PyObject *const *arguments, Py_ssize_t count,
                          PyObject **results) {
  PyObject *wait = NULL;
  /* checked again under the lock: Python waits without it */
  int left = any_is_filled(self->unless);
  if (left) return left < 0 ? FAILED : NOT_HERE;
  if (find_place(self) == FAILED) return FAILED;
  int state = self->inner->launch((PyObject *)self->inner, arguments, count, results, &wait);
  if (state != DONE || enqueue(self, wait) == DONE) return state;
  for (Py_ssize_t i = 0; i < self->head.produced; i++) Py_DECREF(results[i]);
  return FAILED;
}

static int launch(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                  PyObject **results, PyObject **wait) {
  (void)wait; /* this launcher returns none */
  BoundedLauncher *self = (BoundedLauncher *)object;
  int left = any_is_filled(self->unless);
  if (left) return left < 0 ? FAILED : NOT_HERE;
  Py_ssize_t size = self->exchanges == Py_True ? 1 : PyObject_Size(self->queue);
  if (size < 0) return FAILED;
  if (!size) return self->inner->launch((PyObject *)self->inner, arguments, count, results, NULL);
  if (acquire_lock(self->lock) == FAILED) return FAILED;
  int state = launch_in_turn(self, arguments, count, results);
  Raised raised = set_aside();
  release_lock(self->lock);
  put_back_alone(raised, object);
  return state;
}

static int is_ready(PyObject *object, Py_ssize_t count) {
  Launching *inner = ((BoundedLauncher *)object)->inner;
  return !inner->is_ready || inner->is_ready((PyObject *)inner, count);
}

static int bounded_init(BoundedLauncher *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"launcher", "queue", "lock", "bound", "exchanges", "unless", NULL};
  PyObject *launcher, *queue, *lock, *exchanges, *unless;
  Py_ssize_t bound;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOnO!O!", names, &launcher, &queue, &lock, &bound,
                                   &PyBool_Type, &exchanges, &PyTuple_Type, &unless))
    return -1;
  if (self->inner || !is_launching(launcher) || !((Launching *)launcher)->gives_wait) {
    PyErr_Format(PyExc_TypeError, "what is bounded, once, is a launcher of the core; got %R", launcher);
    return -1;
  }
  if (bound < 1) {
    PyErr_SetString(PyExc_ValueError, "at least one launch may be under way");
    return -1;
  }
  PyObject *kept[] = {launcher, queue, lock, exchanges, unless};
  keep_objects(&self->head, kept, 5);
  self->bound = bound;
  self->head.produced = self->inner->produced;
  self->head.launch = launch;
  self->head.is_ready = is_ready;
  return 0;
}

int add_bounded_launcher(PyObject *module) {
  append_name = PyUnicode_InternFromString("append");
  popleft_name = PyUnicode_InternFromString("popleft");
  clear_name = PyUnicode_InternFromString("clear");
  if (!append_name || !popleft_name || !clear_name) return -1;
  return add_launching(module, "plugrt._core.BoundedLauncher",
                       "Launches a program when there are few enough launches under way; runners call it.",
                       sizeof(BoundedLauncher), (initproc)bounded_init, 0);
}
