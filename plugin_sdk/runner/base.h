/* Memory, text and files. Part of plugrt; see docs/conformance.md. */
#ifndef PLUGRT_RUNNER_BASE_H
#define PLUGRT_RUNNER_BASE_H
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void* allocate(size_t size) {
  void* found = calloc(1, size ? size : 1);
  if (!found) {
    fputs("out of memory\n", stderr);
    exit(2);
  }
  return found;
}

/* Reads a file, and appends a NUL; the program ends with 2 if it cannot be read. */
static inline char* read_file(const char* folder, const char* name, size_t* size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  long end = -1;
  if (file && fseek(file, 0, SEEK_END) == 0) end = ftell(file);
  if (end < 0) {
    fprintf(stderr, "%s cannot be read; `plugrt conform --export` writes it\n", path);
    exit(2);
  }
  rewind(file);
  char* found = allocate((size_t)end + 1);
  *size = fread(found, 1, (size_t)end, file);
  fclose(file);
  return found;
}

/* Ends the next word of a line with NUL, and returns it; NULL at the end of the line. */
static inline char* next_word(char** rest) {
  char* begin = *rest;
  while (*begin == ' ') begin++;
  if (!*begin) return NULL;
  char* end = begin;
  while (*end && *end != ' ') end++;
  *rest = *end ? end + 1 : end;
  *end = 0;
  return begin;
}

/* As next_word, for a number; 0 at the end of the line. */
static inline long long next_number(char** rest) {
  char* word = next_word(rest);
  return word ? strtoll(word, NULL, 10) : 0;
}

/* Parses numbers separated by `by`; "-" is none. Returns their number, at most `most`. */
static inline size_t split_numbers(const char* word, char by, int64_t* into, size_t most) {
  size_t count = 0;
  if (!word || *word == '-' || !*word) {
    if (!word || !isdigit((unsigned char)word[1])) return 0;
  }
  while (count < most) {
    char* end;
    into[count++] = strtoll(word, &end, 10);
    if (*end != by) break;
    word = end + 1;
  }
  return count;
}
#endif
