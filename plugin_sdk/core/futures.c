/* Futures: the completion of work, behind events and buffers. Nothing here needs Python.
 *
 * One lock guards all futures: it is held for a few instructions at a time, never while a callback
 * runs, and it can be taken before a fork and released after it, so that a child never finds it
 * held by a thread that it does not have. */
#include "core.h"

#include <pthread.h>
#include <string.h>

typedef struct Callback {
  struct Callback *next;
  FutureCallback call;
  void *argument;
} Callback;

struct Future {
  atomic_long references;
  atomic_int is_done;
  int code;
  char *message;
  size_t size;
  Callback *first, **last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t completed = PTHREAD_COND_INITIALIZER;
static Future ready = {.references = 1, .is_done = 1};
static Future no_memory_left = {
    .references = 1, .is_done = 1, .code = PJRT_Error_Code_RESOURCE_EXHAUSTED};

static void lock_all(void) { pthread_mutex_lock(&lock); }
static void unlock_all(void) { pthread_mutex_unlock(&lock); }

static void unlock_in_child(void) {
  pthread_cond_init(&completed, NULL); /* the waiting threads do not exist in the child */
  unlock_all();
}

void prepare_futures(void) {
  static int is_prepared;
  if (!is_prepared++)
    pthread_atfork(lock_all, unlock_all, unlock_in_child);
}

Future *future_ready(void) { return &ready; }

Future *future_new(void) {
  Future *future = calloc(1, sizeof *future);
  if (future != NULL) {
    future->references = 1;
    future->last = &future->first;
  }
  return future;
}

Future *future_failed(int code, const char *message, size_t size) {
  Future *future = future_new();
  if (future != NULL)
    future_complete(future, code, message, size);
  return future;
}

Future *future_share(Future *future) {
  if (future != &ready)
    atomic_fetch_add(&future->references, 1);
  return future;
}

void future_release(Future *future) {
  static const char dropped[] = "the event was dropped before it was complete";
  if (future == NULL || future == &ready || atomic_fetch_sub(&future->references, 1) != 1)
    return;
  if (!future_is_done(future)) {
    future->references = 1; /* call the remaining callbacks; one may keep a reference */
    future_complete(future, PJRT_Error_Code_CANCELLED, dropped, sizeof dropped - 1);
    future_release(future);
    return;
  }
  free(future->message);
  free(future);
}

int future_is_done(Future *future) {
  return atomic_load_explicit(&future->is_done, memory_order_acquire);
}

PJRT_Error *future_await(Future *future) {
  future_share(future);
  lock_all();
  while (!future_is_done(future))
    pthread_cond_wait(&completed, &lock);
  unlock_all();
  PJRT_Error *error = future_error(future);
  future_release(future);
  return error;
}

PJRT_Error *future_error(Future *future) {
  return future->code ? make_error(future->code, future->message, future->size) : NULL;
}

void future_complete(Future *future, int code, const char *message, size_t size) {
  char *copy = code ? malloc(size + 1) : NULL;
  if (copy != NULL && size > 0)
    memcpy(copy, message, size);
  lock_all();
  if (future_is_done(future)) {
    unlock_all();
    free(copy);
    return;
  }
  future->code = code;
  future->message = copy;
  future->size = copy == NULL ? 0 : size;
  Callback *callback = future->first;
  future->first = NULL;
  future->last = &future->first;
  atomic_store_explicit(&future->is_done, 1, memory_order_release);
  pthread_cond_broadcast(&completed);
  unlock_all();
  while (callback != NULL) {
    Callback *next = callback->next;
    callback->call(future, callback->argument);
    free(callback);
    callback = next;
  }
}

void complete_with(Future *future, PJRT_Error *error) {
  struct PJRT_Error_Message_Args text = {sizeof text, NULL, error, NULL, 0};
  struct PJRT_Error_GetCode_Args code = {sizeof code, NULL, error, 0};
  struct PJRT_Error_Destroy_Args destroy = {sizeof destroy, NULL, error};
  if (error == NULL) {
    future_complete(future, 0, NULL, 0);
    return;
  }
  error_message(&text);
  error_get_code(&code);
  future_complete(future, code.code, text.message, text.message_size);
  error_destroy(&destroy);
}

void future_copy(Future *target, Future *source) {
  future_complete(target, source->code, source->message, source->size);
}

static void copy_to(Future *source, void *target) {
  future_copy(target, source);
  future_release(target);
}

void future_follow(Future *target, Future *source) {
  future_share(target);
  if (future_then(source, copy_to, target))
    copy_to(&no_memory_left, target);
}

int future_then(Future *future, FutureCallback call, void *argument) {
  if (!future_is_done(future)) {
    Callback *callback = calloc(1, sizeof *callback);
    if (callback == NULL)
      return -1;
    callback->call = call;
    callback->argument = argument;
    lock_all();
    if (!future_is_done(future)) {
      *future->last = callback;
      future->last = &callback->next;
      unlock_all();
      return 0;
    }
    unlock_all();
    free(callback);
  }
  call(future, argument);
  return 0;
}

typedef struct {
  Future *target;
  atomic_long left;
  Future *failed; /* the first that failed */
} Join;

static void join_one(Future *future, void *argument) {
  Join *join = argument;
  if (future->code) {
    lock_all();
    if (join->failed == NULL)
      join->failed = future_share(future);
    unlock_all();
  }
  if (atomic_fetch_sub(&join->left, 1) != 1)
    return;
  future_copy(join->target, join->failed == NULL ? &ready : join->failed);
  future_release(join->failed);
  future_release(join->target);
  free(join);
}

Future *future_join(Future *const *futures, size_t count) {
  size_t pending = 0;
  for (size_t i = 0; i < count; i++)
    pending += futures[i] != &ready;
  if (pending == 0)
    return &ready;
  Future *target = future_new();
  Join *join = calloc(1, sizeof *join);
  if (target == NULL || join == NULL) {
    future_release(target);
    free(join);
    return NULL;
  }
  join->target = future_share(target);
  join->left = (long)count;
  for (size_t i = 0; i < count; i++)
    if (future_then(futures[i], join_one, join))
      join_one(futures[i], join); /* no memory for a callback: does not wait */
  return target;
}
