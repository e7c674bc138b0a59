/* Writes the report, in the JSON format of `plugrt conform --report`. */
#ifndef PLUGRT_RUNNER_REPORT_H
#define PLUGRT_RUNNER_REPORT_H
#include "checks_file.h"
#include "verdict.h"

static inline void write_text(FILE* file, const char* text) {
  fputc('"', file);
  for (const unsigned char* c = (const unsigned char*)text; *c; c++) {
    if (*c == '"' || *c == '\\')
      fprintf(file, "\\%c", *c);
    else if (*c == '\n')
      fputs("\\n", file);
    else if (*c < 32 || *c > 126) /* not ASCII: Latin-1, since a library may give any byte */
      fprintf(file, "\\u%04x", *c);
    else
      fputc(*c, file);
  }
  fputc('"', file);
}

static inline void write_counts(FILE* file, const Result* results, int level) {
  for (int v = 0; v < VERDICTS; v++) {
    int count = 0;
    for (size_t i = 0; i < kit.count; i++)
      count += results[i].verdict == v && (level < 0 || kit.checks[i].level == level);
    fprintf(file, "%s\"%s\": %d", v ? ", " : "{", NAMES[v], count);
  }
  fputc('}', file);
}

/* Returns the level that the results grant, or -1, as the kit's `grant`. */
static inline int find_level(const Result* results) {
  int reached = -1;
  for (int level = 0; level <= 4; level++) {
    for (size_t i = 0; i < kit.count; i++) {
      bool advice = level > 0 && strcmp(kit.checks[i].by, "plugrt") == 0;
      if (kit.checks[i].level == level && !advice && results[i].applies &&
          results[i].verdict > REFUSED)
        return reached;
    }
    reached = level;
  }
  return reached;
}

static inline void write_row(FILE* file, const Check* check, const Result* result,
                             const char* library) {
  const char* texts[][2] = {
      {"id", check->id}, {"title", check->title}, {"needs", check->needs},
      {"capability", check->capability}, {"rests_on", check->rests_on}, {"why", check->why},
      {"demanded_by", check->by}, {"verdict", NAMES[result->verdict]},
      {"expected", result->expected}, {"got", result->got}, {"where", ""}, {"was", ""}};
  fputs("  {", file);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    fprintf(file, "\"%s\": ", texts[i][0]);
    write_text(file, texts[i][1]);
    fputs(", ", file);
  }
  char command[4600];
  snprintf(command, sizeof command, "runner %s --check=%s", library, check->id);
  fprintf(file, "\"level\": %d, \"seconds\": %.4f, \"applies\": %s, \"waiver\": null, \"reproduce\": ",
          check->level, result->seconds, result->applies ? "true" : "false");
  write_text(file, command);
  fputc('}', file);
}

typedef struct {
  const char *library, *platform, *version, *devices;
  int major, minor;
  double seconds, limit;
} Facts;

static inline void write_report(FILE* file, const Result* results, const Facts* facts) {
  fputs("{\"format\": 1,\n \"kit\": {\"distribution\": ", file);
  write_text(file, kit.distribution);
  fputs(", \"version\": ", file);
  write_text(file, kit.version);
  fprintf(file, ", \"checks\": %d, \"manifest_sha256\": ", kit.kit_checks);
  write_text(file, kit.manifest);
  fputs(", \"runner\": \"C\"},\n \"plugin\": {\"kind\": \"library\", \"name\": ", file);
  write_text(file, facts->library);
  fputs(", \"options\": {}, \"topology\": \"\", \"topology_options\": {}, \"distribution\": \"\", "
        "\"version\": \"\", \"entry_point\": \"\", \"library\": ", file);
  write_text(file, facts->library);
  fprintf(file, ", \"library_sha256\": \"\", \"api_version\": \"%d.%d\", \"hardware\": \"\"},\n",
          facts->major, facts->minor);
  fprintf(file, " \"machine\": {}, \"run\": {\"command\": \"runner\", \"git\": null, \"started\": \"\"},\n"
          " \"settings\": {\"seed\": %d, \"seconds_per_check\": %g, \"jobs\": 1, "
          "\"tolerances_ulp\": {}, \"waivers\": \"\"},\n \"client\": {\"platform\": ",
          kit.seed, facts->limit);
  write_text(file, facts->platform);
  fputs(", \"platform_version\": ", file);
  write_text(file, facts->version);
  fprintf(file, ", \"devices\": [%s]},\n \"notes\": [], \"seconds\": %.3f,\n \"level\": ",
          facts->devices, facts->seconds);
  int level = find_level(results);
  if (level < 0)
    fputs("null", file);
  else
    fprintf(file, "%d", level);
  fputs(", \"level_waivers\": 0, \"not_shown\": \"\", \"counts\": ", file);
  write_counts(file, results, -1);
  fputs(", \"counts_of_levels\": {", file);
  for (level = 0; level <= 4; level++) {
    fprintf(file, "%s\"%d\": ", level ? ", " : "", level);
    write_counts(file, results, level);
  }
  fputs("},\n \"checks\": [\n", file);
  for (size_t i = 0; i < kit.count; i++) {
    write_row(file, &kit.checks[i], &results[i], facts->library);
    fputs(i + 1 < kit.count ? ",\n" : "\n", file);
  }
  fputs(" ]}\n", file);
}
#endif
