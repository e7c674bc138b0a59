/* Compares arrays of a library with expected ones: as bits, or within units in the last place, as the
   kit's `expect_close`. */
#ifndef PLUGRT_RUNNER_COMPARE_H
#define PLUGRT_RUNNER_COMPARE_H
#include <math.h>

#include "base.h"

enum { IEEE, NO_INFINITY, ONE_ZERO, POWERS, FINITE };

typedef struct {
  const char* name;
  size_t size;     /* bytes of an element on the host */
  int bits;        /* of an element on a device, which may pack elements */
  int exponent, mantissa, bias, form; /* of floats; `exponent` is 0 for other types */
  bool complex;
} ElementType;

/* Indexed by PJRT_Buffer_Type. */
static const ElementType ELEMENT_TYPES[] = {
    {"invalid", 0, 0, 0, 0, 0, 0, false},
    {"bool", 1, 8, 0, 0, 0, 0, false},
    {"int8", 1, 8, 0, 0, 0, 0, false},
    {"int16", 2, 16, 0, 0, 0, 0, false},
    {"int32", 4, 32, 0, 0, 0, 0, false},
    {"int64", 8, 64, 0, 0, 0, 0, false},
    {"uint8", 1, 8, 0, 0, 0, 0, false},
    {"uint16", 2, 16, 0, 0, 0, 0, false},
    {"uint32", 4, 32, 0, 0, 0, 0, false},
    {"uint64", 8, 64, 0, 0, 0, 0, false},
    {"float16", 2, 16, 5, 10, 15, IEEE, false},
    {"float32", 4, 32, 8, 23, 127, IEEE, false},
    {"float64", 8, 64, 11, 52, 1023, IEEE, false},
    {"bfloat16", 2, 16, 8, 7, 127, IEEE, false},
    {"complex64", 8, 64, 8, 23, 127, IEEE, true},
    {"complex128", 16, 128, 11, 52, 1023, IEEE, true},
    {"float8_e5m2", 1, 8, 5, 2, 15, IEEE, false},
    {"float8_e4m3fn", 1, 8, 4, 3, 7, NO_INFINITY, false},
    {"float8_e4m3b11fnuz", 1, 8, 4, 3, 11, ONE_ZERO, false},
    {"float8_e5m2fnuz", 1, 8, 5, 2, 16, ONE_ZERO, false},
    {"float8_e4m3fnuz", 1, 8, 4, 3, 8, ONE_ZERO, false},
    {"int4", 1, 4, 0, 0, 0, 0, false},
    {"uint4", 1, 4, 0, 0, 0, 0, false},
    {"token", 0, 0, 0, 0, 0, 0, false},
    {"int2", 1, 2, 0, 0, 0, 0, false},
    {"uint2", 1, 2, 0, 0, 0, 0, false},
    {"float8_e4m3", 1, 8, 4, 3, 7, IEEE, false},
    {"float8_e3m4", 1, 8, 3, 4, 3, IEEE, false},
    {"float8_e8m0fnu", 1, 8, 8, 0, 127, POWERS, false},
    {"float4_e2m1fn", 1, 4, 2, 1, 1, FINITE, false},
    {"int1", 1, 1, 0, 0, 0, 0, false},
    {"uint1", 1, 1, 0, 0, 0, 0, false},
    {"float6_e2m3fn", 1, 6, 2, 3, 1, FINITE, false},
    {"float6_e3m2fn", 1, 6, 3, 2, 3, FINITE, false},
};
enum { ELEMENT_TYPE_COUNT = sizeof ELEMENT_TYPES / sizeof *ELEMENT_TYPES };

static inline const ElementType* element_type(int number) {
  bool known = number > 0 && number < ELEMENT_TYPE_COUNT;
  return &ELEMENT_TYPES[known ? number : 0];
}

/* Converts a float of up to 16 bits to a double. */
static inline double decode_small(const ElementType* type, unsigned bits) {
  int width = type->exponent + type->mantissa;
  if (type->form == POWERS) return bits == 255 ? (double)NAN : ldexp(1, (int)bits - type->bias);
  unsigned rest = bits & ((1u << width) - 1);
  bool negative = (bits >> width) & 1;
  unsigned top = (1u << type->exponent) - 1;
  unsigned exponent = rest >> type->mantissa;
  unsigned mantissa = rest & ((1u << type->mantissa) - 1);
  double sign = negative ? -1 : 1;
  if (type->form == IEEE && exponent == top) return mantissa ? (double)NAN : sign * (double)INFINITY;
  if (type->form == NO_INFINITY && rest == (1u << width) - 1) return (double)NAN;
  if (type->form == ONE_ZERO && negative && !rest) return (double)NAN;
  double value = exponent
                     ? ldexp((double)(mantissa + (1u << type->mantissa)),
                             (int)exponent - type->bias - type->mantissa)
                     : ldexp((double)mantissa, 1 - type->bias - type->mantissa);
  return sign * value;
}

/* Converts a float, or the real (part 0) or imaginary part of a complex number, to a double. */
static inline double decode(const ElementType* type, const unsigned char* element, int part) {
  size_t size = type->complex ? type->size / 2 : type->size;
  element += (size_t)part * size;
  if (size == 8) {
    double found;
    memcpy(&found, element, 8);
    return found;
  }
  if (size == 4) {
    float found;
    memcpy(&found, element, 4);
    return (double)found;
  }
  unsigned bits = element[0];
  if (size == 2) bits |= (unsigned)element[1] << 8; /* little-endian, like the data file */
  return decode_small(type, bits);
}

/* Returns the magnitude of an element. Newton's method computes the square root: libm is not linked. */
static inline double magnitude(const ElementType* type, const unsigned char* element) {
  double a = fabs(decode(type, element, 0));
  double b = type->complex ? fabs(decode(type, element, 1)) : 0;
  double most = a > b ? a : b, ratio = a > b ? b / a : a / b;
  if (!(most > 0) || !isfinite(most) || b == 0) return a > b ? a : b;
  double square = 1 + ratio * ratio, root = 1.2;
  for (int i = 0; i < 6; i++) root = (root + square / root) / 2;
  return most * root;
}

/* Returns the distance from a magnitude to the next greater number of the type. */
static inline double unit_at(const ElementType* type, double at) {
  int exponent = 0;
  if (isfinite(at)) (void)frexp(at, &exponent);
  double unit = ldexp(1, exponent - 1 - type->mantissa);
  double least = ldexp(1, 1 - type->bias - type->mantissa);
  return unit > least ? unit : least;
}

static inline bool is_close(double got, double expected, double ulps, double unit) {
  if (got == expected || (isnan(got) && isnan(expected))) return true;
  return ulps > 0 && isfinite(got) && fabs(got - expected) <= ulps * unit;
}

/* Returns the index of the first different element, or -1. With `of_largest` the unit is the last place
   of the largest expected element. */
static inline int64_t find_different(const ElementType* type, const unsigned char* got,
                                     const unsigned char* expected, size_t count, double ulps,
                                     bool of_largest) {
  double largest = 0;
  for (size_t i = 0; of_largest && type->exponent && i < count; i++) {
    double each = magnitude(type, expected + i * type->size);
    if (!(each <= largest)) largest = each;
  }
  for (size_t i = 0; i < count; i++) {
    const unsigned char *a = got + i * type->size, *b = expected + i * type->size;
    if (!type->exponent) {
      if (memcmp(a, b, type->size)) return (int64_t)i;
      continue;
    }
    double own = type->complex && !of_largest ? magnitude(type, b) : largest;
    for (int part = 0; part <= (int)type->complex; part++) {
      double wanted = decode(type, b, part);
      double unit = unit_at(type, fabs(wanted) > own ? fabs(wanted) : own);
      if (!is_close(decode(type, a, part), wanted, ulps, unit)) return (int64_t)i;
    }
  }
  return -1;
}

/* Returns the index of the first element with different bits, or -1. */
static inline int64_t find_other_bits(const ElementType* type, const unsigned char* got,
                                      const unsigned char* expected, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (memcmp(got + i * type->size, expected + i * type->size, type->size)) return (int64_t)i;
  return -1;
}

/* Formats an element: its value, and its bytes. */
static inline void show_element(const ElementType* type, const unsigned char* at, char* into,
                                size_t size) {
  char hex[40] = "";
  for (size_t i = 0; i < type->size && i < 16; i++)
    snprintf(hex + 2 * i, sizeof hex - 2 * i, "%02x", (unsigned)at[i]);
  if (type->complex)
    snprintf(into, size, "%.9g%+.9gj (bytes %s)", decode(type, at, 0), decode(type, at, 1), hex);
  else if (type->exponent)
    snprintf(into, size, "%.17g (bytes %s)", decode(type, at, 0), hex);
  else
    snprintf(into, size, "bytes %s", hex);
}
#endif
