/* Declarations for the files of this folder alone; launches.h has the ones for other folders. */
#ifndef PLUGRT_LAUNCHES_INTERNAL_H
#define PLUGRT_LAUNCHES_INTERNAL_H
#include "launches/launches.h"
#include "library/library.h"

/* ---- donated.c: the arguments that a launch by functions takes ---- */
typedef struct {
  Py_ssize_t *numbers, count;
  PyObject *is_deleted, *delete; /* of one argument */
} Donated;
/* `arity` is above all numbers. -1 with an exception; may be called again then. */
int donated_init(Donated *self, PyObject *donated, Py_ssize_t arity, PyObject *is_deleted,
               PyObject *delete);
/* Whether none of them is another argument as well. */
int is_donated_once(const Donated *self, PyObject *const *arguments, Py_ssize_t count);
/* Deletes those that the launch left alone: DONE, or FAILED. */
int donated_end(const Donated *self, PyObject *const *arguments, Py_ssize_t count);
int donated_visit(const Donated *self, visitproc visit, void *arg);
void donated_drop(Donated *self);

/* ---- launching.c: what all launchers are ---- */
/* The head of what launches one program. */
typedef struct {
  PyObject_HEAD
  /* Launches with arguments that the caller holds, and sets one new reference for each of the `produced`
     results: DONE. FAILED with an exception; NOT_HERE if Python has to do it, as `is_ready` (unless
     NULL) foresees. `wait`, NULL unless `gives_wait`, is set to what waits, when it is called, until the
     launch has ended. */
  int (*launch)(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject **results,
                PyObject **wait);
  int (*is_ready)(PyObject *self, Py_ssize_t count);
  PyObject *(*in_python)(PyObject *self, PyObject *arguments); /* a launch that is NOT_HERE, if called */
  Py_ssize_t produced;
  int gives_wait;
  int waits_for_uses; /* a launch waits for others that use what it takes, which may wait for it */
  Donated donated;    /* of a launch by functions */
  Py_ssize_t kept;    /* the number of objects that it keeps, which follow this head */
} Launching;
/* Adds a class of these, whose objects can be called, launcher(arguments) -> list of results, if they
   launch in Python; 0, or -1 with an exception. */
int add_launching(PyObject *module, const char *name, const char *doc, size_t size, initproc init,
                  int is_called);
int is_launching(PyObject *object); /* whether it is of one of these classes */
/* Sets what it keeps: new references to objects, of which some may be NULL. */
void keep_objects(Launching *self, PyObject *const *objects, Py_ssize_t count);
PyObject *none_as_null(PyObject *object);

/* ---- launcher.c: launches of these ---- */
typedef struct {
  Launching head;
  Executable *executable;
  PyObject *owner; /* the plugrt.capi.programs.loaded_executable.LoadedExecutable */
  PyObject *mark;  /* marks the arguments that a launch donated, as far as they are not known */
} Launcher;

/* ---- launch_results.c: what a launch that was made gave and took ---- */
/* Sets the results: DONE, or FAILED. The library took what is donated in any case. `made` has those of
   each device, of which none is left, and `room` is for the parts of one result. */
int finish_launch(Launcher *self, PyObject *const *arguments, Py_ssize_t count, PJRT_Buffer **made,
                  PyObject **room, PyObject **results);
void drop_results(Launcher *self, PyObject **results);

/* ---- launch_errors.c: what becomes of a launch that failed ---- */
/* Raises what a method of the owner returns for the address of an error and the arguments. */
void raise_launch_error(Launcher *self, PJRT_Error *error, PyObject *const *arguments,
                        Py_ssize_t count);
/* Raises that one of these results is NULL, and destroys the others. */
void raise_missing_result(Launcher *self, PJRT_Buffer *const *made, Py_ssize_t count);
void raise_missing_event(Launcher *self);

/* ---- shards_launcher.c: launches on several devices through functions that a backend gives ---- */
typedef struct {
  Launching head;
  PyObject *owner;      /* owner.execute(arguments): the same in Python */
  PyTypeObject *cls;    /* of shards */
  PyObject *parameters; /* the type of each argument, a tuple */
  PyObject *place;      /* of the arguments */
  PyObject *results;    /* the type and the place of each result, a tuple of pairs */
  PyObject *launches;   /* (launch, launch with a token, what `take` takes): one, or one a device,
                           whose tokens shards keep as `_ends` */
  PyObject *take;       /* take(launched, …, False): the arrays of the results */
  PyObject *take_token; /* take_token(launched) */
  PyObject *make_wait;  /* make_wait(token): what waits for the launch; without one, of None */
  PyObject *is_deleted; /* is_deleted(array) */
  PyObject *prepare;    /* prepare(), before each launch */
  PyObject *lock;       /* held from the look at the arguments until they are launched with */
  PyObject *unless;     /* tuple: while one of these is not empty, Python launches */
  PyObject *explain;    /* explain(error): the exception to raise */
  PyObject *tidy;       /* tidy(), as `tidy_up` calls it */
  unsigned count;       /* of launches */
} ShardsLauncher;
int shards_launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject **results,
                  PyObject **wait);
int set_shards_names(void);

/* ---- function_launcher.c: launches through functions that a backend gives ---- */
/* Calls tidy() at each thousandth launch; NULL has nothing to do. DONE, or FAILED. */
int tidy_up(PyObject *tidy, unsigned *launches);

/* ---- tree.c: leaves to pytrees ---- */
extern PyTypeObject *Tree_Type;
Py_ssize_t tree_leaves(PyObject *tree);
PyObject *tree_build(PyObject *tree, PyObject *const *leaves);

/* ---- outputs.c: the results of a launch to what the call returns ---- */
extern PyTypeObject *Outputs_Type;
Py_ssize_t outputs_count(PyObject *outputs);
/* Whether they are made, and those of a call with so many arguments, and so many results. */
int outputs_fit(PyObject *outputs, Py_ssize_t arity, Py_ssize_t produced);
/* Sets the array of each output that is no result, NULL for the others: DONE. Before the launch: what
   would take the buffers from now on finds that another array has them. NOT_HERE where Python has to
   look, FAILED with an exception; what is set then is to be dropped. */
int outputs_pass_on(PyObject *outputs, PyObject *const *values, PyObject **arrays);
void outputs_drop(PyObject *outputs, PyObject **arrays);
/* Takes the results and sets the arrays of these; 0, or -1 with an exception. */
int outputs_wrap(PyObject *outputs, PyObject **results, Py_ssize_t produced, PyObject **arrays);
PyObject *outputs_put_together(PyObject *outputs, PyObject **arrays); /* takes the arrays */

/* ---- donation.c: the arguments of a call that its launch takes ---- */
typedef struct {
  Py_ssize_t count;
  Py_ssize_t *numbers; /* which arguments of the call these are */
  PyObject *taker;     /* the name of the function, for those who use them afterwards */
} Donation;
/* Sets numbers of arguments of a call from a tuple and returns how many; -1 with an exception. */
Py_ssize_t read_numbers(PyObject *given, Py_ssize_t arity, Py_ssize_t **numbers);
int donation_read(Donation *self, PyObject *donated, Py_ssize_t arity, PyObject *taker);
/* Whether all are kept, and not put: what is not looked at before the launch need not be an array. */
int donation_is_among(const Donation *self, const Py_ssize_t *kept, Py_ssize_t count,
                      PyObject *puts);
/* Takes from the arrays what they have, before the launch, and says that it is gone; `taken` has room
   for two of each. DONE; NOT_HERE where Python has to look, as another array may have the buffers, or,
   if `alone`, another launch; FAILED with an exception. */
int donation_take(const Donation *self, PyObject *const *values, PyObject *const *held,
                  Py_ssize_t count, int alone, PyObject **taken);
/* After the launch: drops what was taken, or gives it back where there was no launch. */
void donation_end(const Donation *self, PyObject *const *values, PyObject **taken, int launched);
void donation_drop(Donation *self);

/* ---- scratch_pool.c: memory that launches of a program read an argument from ---- */
enum { MOST_SLOTS = 64 }; /* a backend has fewer launches under way at once */
typedef struct ScratchPool ScratchPool;
typedef struct Slot {
  PyObject *argument; /* what a launch takes, NULL where there is none yet */
  Py_buffer memory;   /* what is written to */
  char in_use;
  PyObject *results;      /* of a launch that had not ended when it returned, a tuple; in_use is set */
  unsigned long launched; /* which is older, of two with results */
  ScratchPool *pool;
  struct Slot *next, **link; /* the next one with results, and what refers to this one */
} Slot;
struct ScratchPool {
  PyObject *make;     /* make(): an argument and its memory, or None; NULL where the backend has none */
  PyObject *is_ready; /* is_ready(result of a launch) */
  Py_ssize_t size;    /* of the memory */
  int late;           /* launches whose results are kept: 0 where these are large */
  Slot *slots[MOST_SLOTS]; /* made when they are first needed */
  int count, most;         /* of these */
  unsigned long launches;  /* that had not ended when they returned */
  unsigned lost, waiting, pause; /* launches in a row that had not ended; those until the next try */
};
enum { NOT_READ, READ, NOT_USED }; /* what a launch did with the memory, as far as is known */
void scratch_pool_init(ScratchPool *self, PyObject *make, PyObject *is_ready, Py_ssize_t size, int late);
/* Sets memory that no launch has, and which is in use from now on: DONE. NOT_HERE, or FAILED. */
int scratch_pool_acquire(ScratchPool *self, Slot **found);
/* Returns a tuple of a launch's results that are not there yet, NULL where none are kept. */
PyObject *scratch_pool_keep(ScratchPool *self, PyObject *const *results, Py_ssize_t count);
/* After the launch, or without one; ``results`` is what `scratch_pool_keep` returned. */
void scratch_pool_release(ScratchPool *self, PyObject *argument, int use, PyObject *results);
/* Whether all results are there, and the memory was read; -1 with an exception. */
int has_ready_results(ScratchPool *self, PyObject *const *results, Py_ssize_t count);
void slot_drop(Slot *slot); /* the memory is left to whoever has it */
int scratch_pool_traverse(ScratchPool *self, visitproc visit, void *arg);
void scratch_pool_drop(ScratchPool *self);
/* Drops what is kept of launches with this result, which a launch is to take. */
void forget_late_result(PyObject *result);

/* ---- scratch_put.c: host values that are written to scratch memory of a launch, or put ---- */
extern PyTypeObject *ScratchPut_Type;
int is_scratch_put_made(PyObject *self);
ScratchPool *get_scratch_pool(PyObject *self); /* NULL where all values are put */
/* Sets a new reference to what the launch takes of a value: DONE. FAILED, or NOT_HERE, as a launch. */
int scratch_put_value(PyObject *self, PyObject *value, PyObject **made);

/* ---- device_put.c: puts or copies an argument of a call ---- */
/* Sets an array of `count` of them, new references, NULL for None: 0, or -1 with an exception. */
int read_device_puts(PyObject *given, Py_ssize_t count, PyObject ***device_puts);
/* Sets a new reference to what the launch takes of a value: DONE. FAILED, or NOT_HERE, as a launch. */
int device_put_value(PyObject *device_put, PyObject *value, PyObject **made);
/* Releases their scratch memory, after a launch in that state: the same, or FAILED with an exception. The
   results are dropped then. */
int end_device_puts(PyObject *const *device_puts, PyObject *const *held, Py_ssize_t count, int state,
                 PyObject **results, Py_ssize_t produced);

/* ---- runner.c: runs a program with the arguments of a call ---- */

#endif
