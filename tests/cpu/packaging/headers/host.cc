// A host that asks an error itself, through the table that it begins with.
#include <stdio.h>
#include "newer.h"
extern "C" const PJRT_Api* GetPjrtApi();
int main() {
  PJRT_Error* error = GetPjrtApi()->PJRT_Client_Create(nullptr);
  const char* message;
  size_t size;
  error->vtable->message(error, &message, &size);
  printf("%d %.*s\n", error->vtable->get_code(error), (int)size, message);
  error->vtable->destroy(error);
  PJRT_Error_ForEachPayload_Args visit = {nullptr};
  printf("%d\n", GetPjrtApi()->PJRT_Error_ForEachPayload(&visit) != nullptr);
}
