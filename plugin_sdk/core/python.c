/* Enters and leaves Python: from any thread, in any state of the interpreter. */
#include "core.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

PyObject *describe_exception;

typedef int (*Question)(void);

/* Public only since Python 3.13, which renamed it. */
static Question is_finalizing(void) {
  static _Atomic(Question) found;
  Question question = found;
  if (question == NULL) {
    question = (Question)dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (question == NULL)
      question = (Question)dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    found = question;
  }
  return question;
}

/* Whether this thread has the GIL. PyGILState_Check is public, but not in the limited API. */
static int holds_gil(void) {
  Question question = (Question)dlsym(RTLD_DEFAULT, "PyGILState_Check");
  return question != NULL && question();
}

/* At exit Python ends every thread that requests the GIL: by pthread_exit (until 3.13), which
 * becomes std::terminate in C++ frames of the host. So threads are counted while they are in this
 * library. Once Python's exit handlers run, close_python admits no other thread and waits
 * until the others have left. */
static atomic_long inside;
static _Thread_local long inside_here; /* this thread's entries: callbacks may enter again */
static atomic_int is_closing;
static pthread_t closer;

/* A forked child has one thread: the one that forked, which may be inside. */
static void forget_threads(void) { inside = inside_here; }

void prepare_python(void) {
  static int is_prepared;
  if (!is_prepared++)
    pthread_atfork(NULL, NULL, forget_threads);
}

void close_python(void) {
  const struct timespec pause = {0, 1000000};
  closer = pthread_self();
  is_closing = 1;
  Py_BEGIN_ALLOW_THREADS
  for (int i = 0; i < 5000 && inside > 0; i++)
    nanosleep(&pause, NULL);
  Py_END_ALLOW_THREADS
}

static int python_is_usable(void) {
  Question finalizing = is_finalizing();
  return Py_IsInitialized() && !(finalizing != NULL && finalizing());
}

int try_python(Entry *entry) {
  atomic_fetch_add(&inside, 1);
  if (!python_is_usable() || (is_closing && !pthread_equal(closer, pthread_self()))) {
    atomic_fetch_sub(&inside, 1);
    return 0;
  }
  inside_here++;
  entry->state = PyGILState_Ensure();
  /* Hosts free arrays while an exception is pending; Python code must not start with one set. */
  PyErr_Fetch(&entry->type, &entry->value, &entry->traceback);
  return 1;
}

PJRT_Error *enter_python(Entry *entry, const char *function) {
  if (try_python(entry))
    return NULL;
  return format_error(PJRT_Error_Code_UNAVAILABLE,
                      "PJRT_%s needs Python, which is not running any more", function);
}

enum { PATIENCE_IN_MILLISECONDS = 10000 }; /* C code seldom keeps the GIL so long */

/* Completes a future once this thread has acquired the GIL, or cannot. */
static void *take_gil_once(void *attempt) {
  Entry entry;
  if (try_python(&entry))
    leave_python(&entry);
  complete_with(attempt, NULL);
  future_release(attempt);
  return NULL;
}

/* A thread that has begun to acquire the GIL cannot give up, so another thread tries first. */
static PJRT_Error *wait_for_gil(const char *function) {
  const struct timespec pause = {0, 1000000};
  pthread_t thread;
  Future *attempt = future_new();
  if (attempt == NULL)
    return no_host_memory();
  if (pthread_create(&thread, NULL, take_gil_once, future_share(attempt))) {
    future_release(attempt);
    future_release(attempt);
    return no_host_memory();
  }
  pthread_detach(thread);
  for (int i = 0; i < PATIENCE_IN_MILLISECONDS && !future_is_done(attempt); i++)
    nanosleep(&pause, NULL);
  int had = future_is_done(attempt);
  future_release(attempt);
  if (had)
    return NULL;
  return format_error(
      PJRT_Error_Code_UNAVAILABLE,
      "PJRT_%s needs Python's lock (the GIL), since the plugin is written in Python; another "
      "thread kept the lock for %d seconds. The host seems to hold it while it waits for this "
      "call, as JAX does where it compiles for a topology and has a client under the topology's "
      "platform name. Load the library under another name, or compile with plugrt.topology",
      function, PATIENCE_IN_MILLISECONDS / 1000);
}

PJRT_Error *enter_python_in_time(Entry *entry, const char *function) {
  PJRT_Error *error = holds_gil() ? NULL : wait_for_gil(function);
  return error == NULL ? enter_python(entry, function) : error;
}

void leave_python(Entry *entry) {
  PyErr_Restore(entry->type, entry->value, entry->traceback);
  PyGILState_Release(entry->state);
  inside_here--;
  atomic_fetch_sub(&inside, 1);
}

static PyObject *fetch_exception(void) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != NULL && traceback != NULL)
    PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
}

PyObject *describe(const char *function, PyObject *exception) {
  PyObject *answer = NULL;
  /* A signal handler may raise during the call: then its exception is described. */
  for (int left = 3; exception != NULL && describe_exception != NULL && left > 0; left--) {
    answer = PyObject_CallFunction(describe_exception, "sO", function, exception);
    Py_DECREF(exception);
    exception = answer == NULL ? fetch_exception() : NULL;
  }
  Py_XDECREF(exception);
  return answer;
}

static int raise_in_main_thread(void *exception) {
  PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)exception), exception);
  Py_DECREF((PyObject *)exception);
  return -1;
}

/* Raises an exception when the main thread next runs Python. Takes the reference. */
static int raise_later(PyObject *exception) {
  int failed = Py_AddPendingCall(raise_in_main_thread, exception);
  if (failed)
    Py_DECREF(exception);
  return failed;
}

PJRT_Error *take_exception(const char *function) {
  PyObject *answer = describe(function, fetch_exception()), *again = Py_None;
  int code = PJRT_Error_Code_INTERNAL;
  const char *message;
  Py_ssize_t size;
  PJRT_Error *error;
  if (answer != NULL && PyArg_ParseTuple(answer, "is#O", &code, &message, &size, &again))
    error = make_error(code, message, (size_t)size);
  else
    error = format_error(PJRT_Error_Code_INTERNAL,
                         "PJRT_%s failed, and so did the description of its exception", function);
  PyErr_Clear();
  if (again != Py_None)
    raise_later(Py_NewRef(again));
  Py_XDECREF(answer);
  return error;
}

/* Whether an exception is an interrupt: only the main thread runs signal handlers. */
static int is_interrupt(PyObject *exception) {
  PyObject *threading = PyImport_ImportModule("threading"), *here = NULL, *main = NULL;
  if (threading != NULL) {
    here = PyObject_CallMethod(threading, "current_thread", NULL);
    main = PyObject_CallMethod(threading, "main_thread", NULL);
  }
  int found = here != NULL && here == main &&
              !PyErr_GivenExceptionMatches(exception, PyExc_Exception);
  Py_XDECREF(main);
  Py_XDECREF(here);
  Py_XDECREF(threading);
  PyErr_Clear();
  return found;
}

/* Does not use PyErr_Print, which ends the process on SystemExit. */
void log_exception(const char *function) {
  PyObject *exception = fetch_exception();
  if (exception != NULL && is_interrupt(exception) && !raise_later(Py_NewRef(exception))) {
    Py_DECREF(exception);
    return;
  }
  if (exception != NULL)
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
  Py_XDECREF(exception);
  PJRT_Error *error = take_exception(function);
  struct PJRT_Error_Message_Args text = {sizeof text, NULL, error, NULL, 0};
  struct PJRT_Error_Destroy_Args destroy = {sizeof destroy, NULL, error};
  error_message(&text);
  fprintf(stderr, "plugrt_sdk.export: PJRT_%s must not fail, and goes on after: %.*s\n", function,
          (int)text.message_size, text.message);
  error_destroy(&destroy);
}

void release_object(PyObject *object) {
  Entry entry;
  if (object == NULL || !try_python(&entry))
    return; /* without Python it cannot be released */
  Py_DECREF(object);
  leave_python(&entry);
}
