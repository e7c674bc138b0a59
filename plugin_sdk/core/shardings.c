/* The extension Shardings: how a program's arguments and results lie on its devices. */
#include "core.h"

/* NULL where the backend does not say: hosts take that for a program that is not partitioned. An
 * error would be logged by XLA's client at every compilation. */
static PJRT_Error *
output_shardings(struct PJRT_Shardings_Executable_OutputShardings_Args *args) {
  const Texts *shardings = &args->executable->output_shardings;
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

/* --- the table ---------------------------------------------------------------------------------- */

static PJRT_Shardings_Extension filled;
PJRT_SHARDINGS_SLOTS(DEFINE_CALLS)

void fill_shardings(PJRT_Shardings_Extension *table) {
  if (filled.base.struct_size == 0) { /* once, as hosts may be calling by way of it */
    filled = (PJRT_Shardings_Extension){PJRT_SHARDINGS_SLOTS(REFUSED)};
    filled.Shardings_Executable_OutputShardings = output_shardings;
    filled.Shardings_Executable_ParameterShardings = parameter_shardings;
    filled.base.struct_size = sizeof filled;
  }
  *table = (PJRT_Shardings_Extension){PJRT_SHARDINGS_SLOTS(GUARDED)};
  table->base.struct_size = sizeof *table;
  table->base.type = PJRT_Extension_Type_Shardings;
}
