/* The type and number of each pointer, in a table beside the library's handles, which are passed on
 * unchanged.
 *
 * The key is the address and the type: a library may place one object at the beginning of another.
 * A destroyed handle stays in the table until its address is used again. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

enum { SHARDS = 64, FIRST_BUCKETS = 64 };

typedef struct {
  pthread_mutex_t lock;
  Handle **buckets;
  size_t num_buckets, count;
} Shard;

static Shard shards[SHARDS] = {[0 ... SHARDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};
static atomic_ullong created[TYPE_COUNT], destroyed[TYPE_COUNT], numbers[TYPE_COUNT];
/* Counts of events destroyed before a host awaited or queried them, by creating function. */
static atomic_ullong unasked[FUNCTION_COUNT];

static uint64_t mix(const void *pointer) {
  uint64_t bits = (uintptr_t)pointer >> 3;
  return (bits ^ bits >> 17) * 0x9e3779b97f4a7c15u;
}

static Shard *lock_shard(const void *pointer) {
  Shard *shard = &shards[mix(pointer) >> 58];
  pthread_mutex_lock(&shard->lock);
  return shard;
}

static Handle **bucket_of(Shard *shard, const void *pointer) {
  return &shard->buckets[(mix(pointer) >> 32) & (shard->num_buckets - 1)];
}

static bool grow(Shard *shard) {
  size_t wanted = shard->num_buckets == 0 ? FIRST_BUCKETS : 4 * shard->num_buckets;
  Handle **before = shard->buckets, **made = calloc(wanted, sizeof *made);
  size_t num_before = shard->num_buckets;
  if (made == NULL)
    return shard->num_buckets != 0;
  shard->buckets = made;
  shard->num_buckets = wanted;
  for (size_t i = 0; i < num_before; i++)
    for (Handle *handle = before[i], *next; handle != NULL; handle = next) {
      Handle **bucket = bucket_of(shard, handle->pointer);
      next = handle->next;
      handle->next = *bucket;
      *bucket = handle;
    }
  free(before);
  return true;
}

static Handle *look_up(Shard *shard, const void *pointer, int type) {
  if (shard->num_buckets == 0)
    return NULL;
  for (Handle *handle = *bucket_of(shard, pointer); handle != NULL; handle = handle->next)
    if (handle->pointer == pointer && handle->type == type)
      return handle;
  return NULL;
}

static bool is_alive(const Handle *handle) { return handle->owned > 0 || handle->is_borrowed; }

int find_handle(void *pointer, int type, Handle *found) {
  Shard *shard = lock_shard(pointer);
  Handle *handle = look_up(shard, pointer, type);
  int state = handle == NULL ? UNKNOWN : is_alive(handle) ? ALIVE : DEAD;
  if (handle != NULL)
    *found = *handle;
  pthread_mutex_unlock(&shard->lock);
  return state;
}

int find_other_type(void *pointer, int type, Handle *found) {
  Shard *shard = lock_shard(pointer);
  int other = -1;
  Handle *handle = shard->num_buckets == 0 ? NULL : *bucket_of(shard, pointer);
  for (; handle != NULL && other < 0; handle = handle->next)
    if (handle->pointer == pointer && handle->type != type && is_alive(handle)) {
      *found = *handle;
      other = handle->type;
    }
  pthread_mutex_unlock(&shard->lock);
  return other;
}

static Handle *add(Shard *shard, void *pointer, int type) {
  if (shard->count >= shard->num_buckets && !grow(shard))
    return NULL;
  Handle *handle = calloc(1, sizeof *handle), **bucket = bucket_of(shard, pointer);
  if (handle == NULL)
    return NULL;
  handle->pointer = pointer;
  handle->type = (uint8_t)type;
  handle->next = *bucket;
  *bucket = handle;
  shard->count++;
  return handle;
}

static void bear(Handle *handle, int function, uint64_t call) {
  handle->number = atomic_fetch_add(&numbers[handle->type], 1) + 1;
  handle->born_in = (int16_t)function;
  handle->born_call = call;
  handle->born_at = now();
  handle->num_outputs = -1;
  handle->was_asked = handle->is_inherited = false;
}

void handle_born(void *pointer, int type, bool owned, int function, uint64_t call, Handle *made) {
  Shard *shard = lock_shard(pointer);
  Handle *handle = look_up(shard, pointer, type);
  if (handle == NULL)
    handle = add(shard, pointer, type);
  if (handle != NULL) {
    if (!is_alive(handle))
      bear(handle, function, call);
    atomic_fetch_add(&created[type], owned);
    handle->owned += owned; /* more than once: one more reference to the same object */
    handle->is_borrowed = handle->is_borrowed || !owned;
    *made = *handle;
  }
  pthread_mutex_unlock(&shard->lock);
}

int handle_dies(void *pointer, int type, int function, uint64_t call, Handle *found) {
  Shard *shard = lock_shard(pointer);
  Handle *handle = look_up(shard, pointer, type);
  int state = handle == NULL ? UNKNOWN : is_alive(handle) ? ALIVE : DEAD;
  if (handle != NULL)
    *found = *handle;
  if (state == ALIVE) {
    atomic_fetch_add(&destroyed[type], 1);
    if (type == TYPE_Event && !handle->was_asked)
      atomic_fetch_add(&unasked[handle->born_in], 1);
    handle->owned -= handle->owned > 0;
    handle->is_borrowed = handle->is_borrowed && handle->owned > 0;
    handle->died_in = (int16_t)function;
    handle->died_call = call;
  }
  pthread_mutex_unlock(&shard->lock);
  return state;
}

void handle_revive(void *pointer, int type, uint64_t call) {
  Shard *shard = lock_shard(pointer);
  Handle *handle = look_up(shard, pointer, type);
  if (handle != NULL && handle->died_call == call) {
    handle->owned++;
    atomic_fetch_sub(&destroyed[type], 1);
  }
  pthread_mutex_unlock(&shard->lock);
}

void handle_was_asked(void *pointer, int type) {
  Shard *shard = lock_shard(pointer);
  Handle *handle = look_up(shard, pointer, type);
  if (handle != NULL)
    handle->was_asked = true;
  pthread_mutex_unlock(&shard->lock);
}

void handle_set_outputs(void *pointer, int64_t num_outputs) {
  Shard *shard = lock_shard(pointer);
  Handle *handle = look_up(shard, pointer, TYPE_LoadedExecutable);
  if (handle != NULL)
    handle->num_outputs = num_outputs;
  pthread_mutex_unlock(&shard->lock);
}

void write_handle_counts(Line *line) {
  line_key(line, "handles");
  line_text(line, "{");
  for (int type = 0; type < TYPE_COUNT; type++) {
    if (created[type] == 0 && destroyed[type] == 0)
      continue;
    line_key(line, type_names[type]);
    line_text(line, "[");
    line_number(line, (int64_t)created[type]);
    line_text(line, ",");
    line_number(line, (int64_t)destroyed[type]);
    line_text(line, "]");
  }
  line_text(line, "}");
}

typedef struct {
  uint64_t handles, unasked, first_number, first_call;
} Leak;

static Leak leaks[TYPE_COUNT][FUNCTION_COUNT + 1];

static void add_leak(const Handle *handle) {
  Leak *leak = &leaks[handle->type][handle->born_in];
  if (leak->handles == 0 || handle->number < leak->first_number) {
    leak->first_number = handle->number;
    leak->first_call = handle->born_call;
  }
  leak->handles += (uint64_t)handle->owned;
  leak->unasked += !handle->was_asked;
}

static void report_leak(int type, int function, const Leak *leak) {
  const char *kind = type == TYPE_Error ? "unfreed error" : "leak";
  char unasked[64] = "";
  if (type == TYPE_Event && leak->unasked > 0)
    snprintf(unasked, sizeof unasked, "; %llu never awaited", (unsigned long long)leak->unasked);
  report(HOST, kind, NULL,
         "%llu %s%s of %s never destroyed (first: %s#%llu of call %llu%s)",
         (unsigned long long)leak->handles, type_names[type], leak->handles > 1 ? "s" : "",
         functions[function].name, type_names[type], (unsigned long long)leak->first_number,
         (unsigned long long)leak->first_call, unasked);
}

/* Hosts may destroy events so, but then never see their errors. */
static void note_unasked(void) {
  for (int function = 0; function < FUNCTION_COUNT; function++)
    if (unasked[function] > 0)
      note("%llu events of %s were destroyed without having been awaited or asked",
           (unsigned long long)unasked[function], functions[function].name);
}

void report_leaks(void) {
  note_unasked();
  for (int i = 0; i < SHARDS; i++) {
    pthread_mutex_lock(&shards[i].lock);
    for (size_t bucket = 0; bucket < shards[i].num_buckets; bucket++)
      for (Handle *handle = shards[i].buckets[bucket]; handle != NULL; handle = handle->next)
        if (handle->owned > 0 && !handle->is_inherited)
          add_leak(handle);
    pthread_mutex_unlock(&shards[i].lock);
  }
  for (int type = 0; type < TYPE_COUNT; type++)
    for (int function = 0; function < FUNCTION_COUNT; function++)
      if (leaks[type][function].handles > 0)
        report_leak(type, function, &leaks[type][function]);
}

void inherit_handles(void) {
  for (int i = 0; i < SHARDS; i++) {
    pthread_mutex_init(&shards[i].lock, NULL);
    for (size_t bucket = 0; bucket < shards[i].num_buckets; bucket++)
      for (Handle *handle = shards[i].buckets[bucket]; handle != NULL; handle = handle->next)
        handle->is_inherited = true;
  }
  for (int type = 0; type < TYPE_COUNT; type++)
    created[type] = destroyed[type] = 0;
  for (int function = 0; function < FUNCTION_COUNT; function++)
    unasked[function] = 0;
}
