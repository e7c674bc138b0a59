/* The extension Shardings: how a program divides its arguments and results over its devices. */
#include "core.h"

/* Gives NULL without shardings from the backend: hosts then treat the program as not partitioned.
 * For an error, XLA's client would log a message at every compilation. */
static PJRT_Error *
output_shardings(struct PJRT_Shardings_Executable_OutputShardings_Args *args) {
  /* For a program without results XLA states one sharding, the empty tuple's, and its client refuses
   * another number. Zero bytes encode the type REPLICATED. */
  static const char *whole[] = {""};
  static const size_t no_bytes[] = {0};
  static const Texts empty_tuple = {whole, (size_t *)no_bytes, 1};
  const Texts *shardings = &args->executable->output_shardings;
  if (shardings->data != NULL && shardings->count == 0)
    shardings = &empty_tuple;
  args->num_outputs = shardings->count;
  args->shardings = shardings->data;
  args->sharding_sizes = shardings->sizes;
  return NULL;
}

static PJRT_Error *
parameter_shardings(struct PJRT_Shardings_Executable_ParameterShardings_Args *args) {
  const Texts *shardings = &args->executable->parameter_shardings;
  args->num_parameters = shardings->count;
  args->shardings = shardings->data;
  args->sharding_sizes = shardings->sizes;
  return NULL;
}

DEFINE_EXTENSION(shardings, Shardings, PJRT_SHARDINGS_SLOTS)

static void set_functions(PJRT_Shardings_Extension *table) {
  table->Shardings_Executable_OutputShardings = output_shardings;
  table->Shardings_Executable_ParameterShardings = parameter_shardings;
}
