/* PJRT_Event: a future that a host owns. Nothing here needs Python. */
#include "core.h"

struct PJRT_Event {
  const void *functions;
  Future *future;
};

PJRT_Event *make_event(Future *future) {
  PJRT_Event *event = future == NULL ? NULL : malloc(sizeof *event);
  if (event == NULL) {
    future_release(future);
    return NULL;
  }
  event->functions = NULL;
  event->future = future;
  atomic_fetch_add(&live_handles[LIVE_EVENTS], 1);
  return event;
}

void free_event(PJRT_Event *event) {
  if (event == NULL)
    return;
  atomic_fetch_sub(&live_handles[LIVE_EVENTS], 1);
  future_release(event->future);
  free(event);
}

static PJRT_Error *event_destroy(struct PJRT_Event_Destroy_Args *args) {
  free_event(args->event);
  return NULL;
}

static PJRT_Error *event_is_ready(struct PJRT_Event_IsReady_Args *args) {
  args->is_ready = (uint8_t)future_is_done(args->event->future);
  return NULL;
}

static PJRT_Error *event_error(struct PJRT_Event_Error_Args *args) {
  if (!future_is_done(args->event->future))
    return format_error(PJRT_Error_Code_FAILED_PRECONDITION,
                        "PJRT_Event_Error was called for an event that is not complete");
  return future_error(args->event->future);
}

static PJRT_Error *event_await(struct PJRT_Event_Await_Args *args) {
  return future_await(args->event->future);
}

typedef struct {
  PJRT_Event_OnReadyCallback callback;
  void *user_argument;
} HostCallback;

static void call_host(Future *future, void *argument) {
  HostCallback host = *(HostCallback *)argument;
  free(argument);
  host.callback(future_error(future), host.user_argument);
}

static PJRT_Error *event_on_ready(struct PJRT_Event_OnReady_Args *args) {
  HostCallback *host = malloc(sizeof *host);
  if (host == NULL)
    return no_host_memory();
  host->callback = args->callback;
  host->user_argument = args->user_arg;
  /* The callback may destroy the event: only its future is used afterwards. */
  Future *future = future_share(args->event->future);
  int failed = future_then(future, call_host, host);
  future_release(future);
  if (!failed)
    return NULL;
  free(host);
  return no_host_memory();
}

static PJRT_Error *event_create(struct PJRT_Event_Create_Args *args) {
  args->event = make_event(future_new());
  return args->event ? NULL : no_host_memory();
}

static PJRT_Error *event_set(struct PJRT_Event_Set_Args *args) {
  if (future_is_done(args->event->future))
    return format_error(PJRT_Error_Code_FAILED_PRECONDITION, "the event was set before");
  future_complete(args->event->future, args->error_code, args->error_message,
                  args->error_message_size);
  return NULL;
}

void fill_events(PJRT_Api *api) {
  api->Event_Destroy = event_destroy;
  api->Event_IsReady = event_is_ready;
  api->Event_Error = event_error;
  api->Event_Await = event_await;
  api->Event_OnReady = event_on_ready;
  api->Event_Create = event_create;
  api->Event_Set = event_set;
}
