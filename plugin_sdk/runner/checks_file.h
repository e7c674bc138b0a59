/* The exported checks: checks.txt and data.bin. */
#ifndef PLUGRT_RUNNER_CHECKS_FILE_H
#define PLUGRT_RUNNER_CHECKS_FILE_H
#include "base.h"

enum { FORMAT = 1, MOST_TYPES = 64 };

typedef enum { DATA, PAIR, TABLE, CODE } Kind;

/* The steps of a check for so many devices. */
typedef struct {
  int devices;
  bool exact; /* only for clients with as many devices */
  const char *unimplemented, *other; /* verdicts if a library refuses a step */
  char** steps;
  size_t count;
} Variant;

typedef struct {
  const char *id, *title, *needs, *rests_on, *why, *capability, *by;
  int level;
  Kind kind;
  const char* reason; /* why it is not data */
  Variant variants[2];
  int variant_count;
} Check;

typedef struct {
  const unsigned char* at;
  size_t size;
} Blob;

/* Process-wide: the contents of both files, read when the program begins. */
static struct {
  char *text, *data;
  size_t data_size;
  const char *distribution, *version, *manifest;
  int kit_checks, seed;
  Check* checks;
  size_t count;
  int since[MOST_TYPES]; /* by element type: the minor version that added it */
  const char *option_platform, *option_names;
  Blob option, twin, twin_options;
} kit;

/* Returns the bytes at "@offset+length". */
static inline Blob read_blob(const char* word) {
  char* end = NULL;
  size_t offset = word && *word == '@' ? strtoull(word + 1, &end, 10) : SIZE_MAX;
  size_t size = end && *end == '+' ? strtoull(end + 1, NULL, 10) : SIZE_MAX;
  if (size > kit.data_size || offset > kit.data_size - size) {
    fprintf(stderr, "checks.txt names the data %s, which data.bin has not\n", word ? word : "?");
    exit(2);
  }
  return (Blob){(const unsigned char*)kit.data + offset, size};
}

static inline void read_head(const char* key, char* rest) {
  if (!strcmp(key, "plugrt-checks") && next_number(&rest) != FORMAT) {
    fprintf(stderr, "this runner runs checks of format %d\n", FORMAT);
    exit(2);
  } else if (!strcmp(key, "kit")) {
    kit.distribution = next_word(&rest);
    kit.version = next_word(&rest);
    kit.kit_checks = (int)next_number(&rest);
    kit.manifest = next_word(&rest);
  } else if (!strcmp(key, "seed")) {
    kit.seed = (int)next_number(&rest);
  } else if (!strcmp(key, "since")) {
    long long type = next_number(&rest);
    if (type >= 0 && type < MOST_TYPES) kit.since[type] = (int)next_number(&rest);
  } else if (!strcmp(key, "option")) {
    kit.option_platform = next_word(&rest);
    kit.option = read_blob(next_word(&rest));
    kit.option_names = next_word(&rest);
  } else if (!strcmp(key, "twin")) {
    kit.twin = read_blob(next_word(&rest));
    kit.twin_options = read_blob(next_word(&rest));
  }
}

static inline void read_kind(Check* check, char* rest) {
  const char* kind = next_word(&rest);
  check->kind = !kind || !strcmp(kind, "code") ? CODE
                : !strcmp(kind, "data")        ? DATA
                : !strcmp(kind, "pair")        ? PAIR
                                               : TABLE;
  check->reason = rest;
}

/* Parses a line of a check; returns false for a step. */
static inline bool read_statement(Check* check, const char* key, char* rest) {
  const struct {
    const char* key;
    const char** to;
  } texts[] = {{"title", &check->title}, {"rests_on", &check->rests_on}, {"why", &check->why},
               {"needs", &check->needs}, {"capability", &check->capability}, {"by", &check->by}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (!strcmp(key, texts[i].key)) {
      *texts[i].to = rest;
      return true;
    }
  if (!strcmp(key, "level")) {
    check->level = (int)next_number(&rest);
  } else if (!strcmp(key, "kind")) {
    read_kind(check, rest);
  } else if (!strcmp(key, "on") && check->variant_count < 2) {
    Variant* variant = &check->variants[check->variant_count++];
    variant->devices = (int)next_number(&rest);
    variant->unimplemented = next_word(&rest);
    variant->other = next_word(&rest);
    variant->exact = next_word(&rest) != NULL;
  } else {
    return false;
  }
  return true;
}

static inline size_t count_lines(const char* text) {
  size_t count = 1;
  for (; *text; text++) count += *text == '\n';
  return count;
}

static inline void read_checks(const char* folder) {
  size_t size;
  kit.data = read_file(folder, "data.bin", &kit.data_size);
  kit.text = read_file(folder, "checks.txt", &size);
  size_t lines = count_lines(kit.text);
  char** steps = allocate(lines * sizeof *steps);
  kit.checks = allocate(lines / 2 * sizeof *kit.checks);
  kit.distribution = kit.version = kit.manifest = "";
  Check* check = NULL;
  char* line = kit.text;
  while (*line) {
    char* end = strchr(line, '\n');
    char* next = end ? end + 1 : line + strlen(line);
    if (end) *end = 0;
    size_t key_size = strcspn(line, " ");
    char key[32] = "";
    if (key_size < sizeof key) memcpy(key, line, key_size);
    char* rest = line[key_size] ? line + key_size + 1 : line + key_size;
    if (!strcmp(key, "check")) {
      check = &kit.checks[kit.count++];
      *check = (Check){.id = rest, .title = "", .needs = "", .rests_on = "", .why = "",
                       .capability = "", .by = "", .reason = ""};
    } else if (!strcmp(key, "end")) {
      check = NULL;
    } else if (!check) {
      read_head(key, rest);
    } else if (!read_statement(check, key, rest) && check->variant_count) {
      Variant* variant = &check->variants[check->variant_count - 1];
      if (!variant->count) variant->steps = steps;
      *steps++ = line;
      variant->count++;
    }
    line = next;
  }
  if (!kit.count) {
    fputs("checks.txt has no checks\n", stderr);
    exit(2);
  }
}
#endif
