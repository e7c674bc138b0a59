/* The part that all generated shim libraries share: tables, conditions, changed arrays. */
#include "common.h"
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static PJRT_Api api;
static PJRT_Client* clients[64];
static pthread_t first_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define WRAP(F) static PJRT_Error* w_##F(PJRT_##F##_Args* a)
#define REAL(F) real.PJRT_##F(a)
#define OTHER_THREAD (!pthread_equal(pthread_self(), first_thread))
#define EVERY(k) (__atomic_add_fetch(&times, 1, __ATOMIC_SEQ_CST) % (k) == 0)
static long times;

/* Errors that the shim makes: a code and a text. */
typedef struct { int magic, code; size_t size; char text[400]; } Own;
enum { MAGIC = 0x5e1f };
static Own* own(const PJRT_Error* e) {
  return e && ((const Own*)e)->magic == MAGIC ? (Own*)e : NULL; /* XLA's begin with a pointer */
}
static PJRT_Error* fail(int code, const char* text) {
  Own* e = calloc(1, sizeof *e);
  e->magic = MAGIC; e->code = code; e->size = strlen(text);
  if (e->size >= sizeof e->text) e->size = sizeof e->text - 1;
  memcpy(e->text, text, e->size);
  return (PJRT_Error*)e;
}
static PJRT_Error* recode(PJRT_Error* e, int from, int to) {
  if (!e || own(e) || code_of(e) != from) return e;
  NEW(Error_Message, m); m.error = e; real.PJRT_Error_Message(&m);
  char text[400]; snprintf(text, sizeof text, "%.*s", (int)m.message_size, m.message);
  drop_error(e);
  return fail(to, text);
}
static void own_Error_Destroy(PJRT_Error_Destroy_Args* a) {
  if (own(a->error)) free(a->error); else real.PJRT_Error_Destroy(a);
}
static void own_Error_Message(PJRT_Error_Message_Args* a) {
  Own* e = own(a->error);
  if (e) { a->message = e->text; a->message_size = e->size; } else real.PJRT_Error_Message(a);
}
static PJRT_Error* own_Error_GetCode(PJRT_Error_GetCode_Args* a) {
  Own* e = own(a->error);
  if (!e) return real.PJRT_Error_GetCode(a);
  a->code = e->code;
  return NULL;
}

/* Clients, for the arrays that the shim puts itself; the last index of those that are there. */
static PJRT_Error* own_Client_Create(PJRT_Client_Create_Args* a) {
  PJRT_Error* e = real.PJRT_Client_Create(a);
  for (int i = 0; !e && i < 64; i++) if (!clients[i]) { clients[i] = a->client; break; }
  return e;
}
static PJRT_Error* own_Client_Destroy(PJRT_Client_Destroy_Args* a) {
  for (int i = 0; i < 64; i++) if (clients[i] == a->client) clients[i] = NULL;
  return real.PJRT_Client_Destroy(a);
}

/* Which programs contain an operation, and other notes of them. */
typedef struct { const void* key; int marked, number; size_t outputs; } Note;
static Note notes[8192];
static int programs;
static Note* note_of(const void* key) {
  for (size_t i = 0, at = ((uintptr_t)key >> 4) % 8192; i < 8192; i++, at = (at + 1) % 8192)
    if (notes[at].key == key || !notes[at].key) return &notes[at];
  return &notes[0];
}
static Note* learn(PJRT_LoadedExecutable* x) {
  Note* note = note_of(x);
  NEW(LoadedExecutable_GetExecutable, g); g.loaded_executable = x;
  note->key = x; note->outputs = 0; note->marked = 0; note->number = ++programs;
  if (drop_error(real.PJRT_LoadedExecutable_GetExecutable(&g))) return note;
  NEW(Executable_NumOutputs, n); n.executable = g.executable;
  if (!drop_error(real.PJRT_Executable_NumOutputs(&n))) note->outputs = n.num_outputs;
  NEW(Executable_Destroy, d); d.executable = g.executable; drop_error(real.PJRT_Executable_Destroy(&d));
  return note;
}
static int has_text(const PJRT_Program* p, const char* word) {
  return memmem(p->code, p->code_size, word, strlen(word)) != NULL;
}

/* Replaces a buffer by one with the given bytes, on the same device and in the same memory. */
static void replace(PJRT_Buffer** at, const Info* info, const void* bytes, PJRT_Device* device) {
  for (int i = 0; i < 64; i++) {
    if (!clients[i]) continue;
    NEW(Client_BufferFromHostBuffer, a);
    a.client = clients[i]; a.data = bytes; a.type = info->type; a.dims = info->dims;
    a.num_dims = info->rank; a.device = device; a.memory = device ? NULL : info->memory;
    a.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    if (drop_error(real.PJRT_Client_BufferFromHostBuffer(&a))) continue;
    finish(a.done_with_host_buffer);
    NEW(Buffer_ReadyEvent, r); r.buffer = a.buffer;
    if (!drop_error(real.PJRT_Buffer_ReadyEvent(&r))) finish(r.event);
    destroy_buffer(*at);
    *at = a.buffer;
    return;
  }
}
static int changes(const Info* info);                               /* where */
static void change(unsigned char* p, size_t size, const Info* info); /* what */
static void change_buffer(PJRT_Buffer** at) {
  Info info; size_t size;
  if (!*at || !describe(*at, &info) || !changes(&info)) return;
  unsigned char* bytes = read_buffer(*at, &size);
  if (!bytes) return;
  change(bytes, size, &info);
  replace(at, &info, bytes, NULL);
  free(bytes);
}

static void install(void); /* the wrappers of the defect */
const PJRT_Api* GetPjrtApi(void) {
  if (api.struct_size) return &api;
  first_thread = pthread_self();
  open_library(LIBRARY);
  api = real;
  api.PJRT_Error_Destroy = own_Error_Destroy;
  api.PJRT_Error_Message = own_Error_Message;
  api.PJRT_Error_GetCode = own_Error_GetCode;
  api.PJRT_Client_Create = own_Client_Create;
  api.PJRT_Client_Destroy = own_Client_Destroy;
  install();
  return &api;
}
