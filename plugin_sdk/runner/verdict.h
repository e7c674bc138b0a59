/* Verdicts and results. */
#ifndef PLUGRT_RUNNER_VERDICT_H
#define PLUGRT_RUNNER_VERDICT_H
#include "base.h"

enum { PASS, REFUSED, FAIL, CRASH, TIMEOUT, WAIVED, NO_HARDWARE, NOT_RUN, VERDICTS };
static const char* const NAMES[] = {"PASS",    "REFUSED", "FAIL",        "CRASH",
                                    "TIMEOUT", "WAIVED",  "NO-HARDWARE", "NOT-RUN"};

typedef struct {
  int verdict;
  char expected[400], got[600];
  double seconds;
  bool applies;
} Result;

static inline Result pass(void) { return (Result){.verdict = PASS, .applies = true}; }

static inline Result not_run(bool applies, const char* why) {
  Result found = {.verdict = NOT_RUN, .applies = applies};
  snprintf(found.got, sizeof found.got, "%s", why);
  return found;
}

static inline Result refused(const char* got) {
  Result found = {.verdict = REFUSED, .applies = true};
  snprintf(found.got, sizeof found.got, "%s", got);
  return found;
}

static inline Result fail(const char* expected, const char* format, ...) {
  Result found = {.verdict = FAIL, .applies = true};
  snprintf(found.expected, sizeof found.expected, "%s", expected);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(found.got, sizeof found.got, format, arguments);
  va_end(arguments);
  return found;
}
#endif
