/* The descriptors of all functions. */
#define DESCRIBE
#include "trace.h"
