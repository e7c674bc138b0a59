/* Records the callbacks of events, and delays the completion of events. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "trace.h"

typedef struct Waiter {
  struct Waiter *next;
  const Table *table;
  PJRT_Event_OnReadyCallback callback;
  void *user_arg;
  PJRT_Error *error;
  uint64_t call;
  uint64_t event; /* the event's number */
  int64_t due;
  atomic_int times_called;
} Waiter;

static int64_t due_time(PJRT_Event *event) {
  Handle handle = {0};
  if (settings.event_delay == 0 || find_handle(event, TYPE_Event, &handle) == UNKNOWN)
    return 0;
  return handle.born_at + settings.event_delay;
}

static void sleep_until(int64_t time) {
  struct timespec until = {time / 1000000000, time % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
    ;
}

static void record_callback(const Waiter *waiter, int64_t begin, int64_t duration) {
  Line line;
  if (!settings.calls)
    return;
  line_begin(&line);
  line_string(&line, "callback", "Event_OnReady");
  line_integer(&line, "call", (int64_t)waiter->call);
  line_integer(&line, "event", (int64_t)waiter->event);
  line_integer(&line, "thread", thread_id());
  line_integer(&line, "time", begin);
  line_integer(&line, "ns", duration);
  line_key(&line, "failed");
  line_text(&line, waiter->error == NULL ? "false" : "true");
  journal_write(&line);
}

static void call_back(Waiter *waiter) {
  int64_t begin = now();
  Waiter copy = *waiter;
  if (!settings.check) /* else kept, to detect a second call */
    free(waiter);
  copy.callback(copy.error, copy.user_arg);
  record_callback(&copy, begin, now() - begin);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static Waiter *delayed; /* all delays are nearly equal, so events complete in the order of arrival
                           */
static bool has_thread;

static void *call_back_later(void *unused) {
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (delayed == NULL)
      pthread_cond_wait(&changed, &lock);
    Waiter *first = delayed;
    delayed = first->next;
    pthread_mutex_unlock(&lock);
    sleep_until(first->due);
    call_back(first);
  }
  return NULL;
}

static void delay(Waiter *waiter) {
  pthread_t thread;
  pthread_mutex_lock(&lock);
  Waiter **end = &delayed;
  while (*end != NULL)
    end = &(*end)->next;
  *end = waiter;
  if (!has_thread && pthread_create(&thread, NULL, call_back_later, NULL) == 0) {
    pthread_detach(thread);
    has_thread = true;
  }
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
}

/* Called by the library. */
static void is_ready(PJRT_Error *error, void *user_arg) {
  Waiter *waiter = user_arg;
  Handle made = {0};
  if (atomic_fetch_add(&waiter->times_called, 1) > 0) {
    Call call = {waiter->table, &functions[FUNCTION_Event_OnReady], FUNCTION_Event_OnReady,
                 waiter->call, NULL, 0};
    report(LIBRARY, "callback", &call, "the callback of Event#%llu was called again",
           (unsigned long long)waiter->event);
    return;
  }
  waiter->error = error;
  if (error != NULL)
    handle_born(error, TYPE_Error, true, FUNCTION_Event_OnReady, waiter->call, &made);
  if (waiter->due > now())
    delay(waiter);
  else
    call_back(waiter);
}

PJRT_Error *forward_on_ready(const Call *call) {
  struct PJRT_Event_OnReady_Args *given = call->args, args = *given;
  AnyFunction function = call->table->slots[call->number];
  Handle event = {0};
  Waiter *waiter = calloc(1, sizeof *waiter);
  if (waiter == NULL)
    return function(given);
  find_handle(given->event, TYPE_Event, &event);
  waiter->table = call->table;
  waiter->callback = given->callback;
  waiter->user_arg = given->user_arg;
  waiter->call = call->id;
  waiter->event = event.number;
  waiter->due = due_time(given->event);
  args.callback = is_ready;
  args.user_arg = waiter;
  PJRT_Error *error = function(&args);
  if (error != NULL) /* the library will not call back */
    free(waiter);
  return error;
}

void await_delayed_event(const Call *call) {
  struct PJRT_Event_Await_Args *args = call->args;
  if (settings.event_delay != 0 && call->number == FUNCTION_Event_Await && args != NULL)
    sleep_until(due_time(args->event));
}

void hide_delayed_event(const Call *call) {
  struct PJRT_Event_IsReady_Args *args = call->args;
  if (settings.event_delay != 0 && call->number == FUNCTION_Event_IsReady && args != NULL &&
      due_time(args->event) > now())
    args->is_ready = 0;
}
