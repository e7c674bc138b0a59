/* Numbers: Python's numbers as elements of arrays. */
#include <float.h>
#include <math.h>

#include "values/values.h"
#include "pjrt.h"

int write_number(int type, PyObject *value, Number *out) {
  double real, imaginary = 0;
  long long number;
  int overflow;
  switch (type) {
    case PJRT_Buffer_Type_PRED:
      if (!PyBool_Check(value)) return 0;
      out->as_bool = value == Py_True;
      return 1;
    case PJRT_Buffer_Type_S32:
    case PJRT_Buffer_Type_S64:
      if (!PyLong_CheckExact(value)) return 0;
      number = PyLong_AsLongLongAndOverflow(value, &overflow);
      if (overflow) return 0;
      if (type == PJRT_Buffer_Type_S64) {
        out->as_int64 = number;
        return 1;
      }
      if (number < INT32_MIN || number > INT32_MAX) return 0;
      out->as_int32 = (int32_t)number;
      return 1;
    case PJRT_Buffer_Type_F32:
    case PJRT_Buffer_Type_F64:
      if (!PyFloat_CheckExact(value)) return 0;
      real = PyFloat_AsDouble(value);
      break;
    case PJRT_Buffer_Type_C64:
    case PJRT_Buffer_Type_C128:
      if (!PyComplex_CheckExact(value)) return 0;
      real = PyComplex_RealAsDouble(value);
      imaginary = PyComplex_ImagAsDouble(value);
      break;
    default:
      return 0;
  }
  if (type == PJRT_Buffer_Type_F64 || type == PJRT_Buffer_Type_C128) {
    out->as_double[0] = real;
    out->as_double[1] = imaginary;
    return 1;
  }
  if ((isfinite(real) && fabs(real) > FLT_MAX) || (isfinite(imaginary) && fabs(imaginary) > FLT_MAX))
    return 0;
  out->as_float[0] = (float)real;
  out->as_float[1] = (float)imaginary;
  return 1;
}

int type_of_numbers(const char *kind, Py_ssize_t size) {
  static const struct {
    char kind;
    char size;
    int type;
  } types[] = {
      {'b', 1, PJRT_Buffer_Type_PRED}, {'i', 4, PJRT_Buffer_Type_S32},  {'i', 8, PJRT_Buffer_Type_S64},
      {'f', 4, PJRT_Buffer_Type_F32},  {'f', 8, PJRT_Buffer_Type_F64},  {'c', 8, PJRT_Buffer_Type_C64},
      {'c', 16, PJRT_Buffer_Type_C128},
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].kind == *kind && types[i].size == size) return types[i].type;
  return 0;
}
