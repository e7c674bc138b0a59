/* futures.c, events.c: the completion of work, shared by events, buffers and the code that
 * completes it. None of it needs the GIL. */
#ifndef PLUGRT_FUTURES_H
#define PLUGRT_FUTURES_H

#include "pjrt.h"

typedef struct Future Future;
typedef void (*FutureCallback)(Future *future, void *argument);

Future *future_ready(void); /* complete and without an error; a new reference, like the others */
Future *future_new(void);   /* NULL if there is no memory */
Future *future_failed(int code, const char *message, size_t size);
Future *future_share(Future *future);
void future_release(Future *future);
int future_is_done(Future *future);
PJRT_Error *future_error(Future *future); /* of a complete future: a new error, or NULL */
PJRT_Error *future_await(Future *future); /* the same, once it is complete */
/* Completes it; nothing happens if it is complete. Calls callbacks: not while a lock is held. */
void future_complete(Future *future, int code, const char *message, size_t size);
void complete_with(Future *future, PJRT_Error *error); /* frees the error; NULL: success */
void future_copy(Future *target, Future *source); /* completes it like a complete source */
void future_follow(Future *target, Future *source); /* the same, once the source is complete */
/* Calls back once, now or when it is complete; -1 if there is no memory. */
int future_then(Future *future, FutureCallback call, void *argument);
/* Complete when all are, with the first error; NULL if there is no memory. */
Future *future_join(Future *const *futures, size_t count);
PJRT_Event *make_event(Future *future); /* steals the reference; NULL if there is no memory */
void free_event(PJRT_Event *event);
void fill_events(PJRT_Api *api);
void prepare_futures(void);

#endif
