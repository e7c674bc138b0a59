/* Declarations for the files of this folder alone; base.h has the ones for other folders. */
#ifndef PLUGRT_BASE_INTERNAL_H
#define PLUGRT_BASE_INTERNAL_H
#include "base/base.h"

/* exceptions.c */
PyObject *raised_value(Raised *raised); /* with its traceback, a new reference; NULL for none */
void drop_raised(Raised raised);

/* finalizers.c */
int is_pending(void);      /* whether finalizers have deferred work */
void finish_pending(void); /* does the deferred work */

/* thread_state.c */
/* makes the next call of each thread read the settings again and run `finish_pending` */
void note_change(void);

#endif
