/* Runs the checks that `plugrt conform --export` wrote against a PJRT library.

   cc -std=c11 -O2 -o runner runner.c -ldl -lpthread
   ./runner libmine.so --report report.json

   The checks run in child processes: one that ends or hangs is the verdict of the check that was
   open, and another goes on with the next. docs/conformance.md has the formats. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "checks_file.h"
#include "library.h"
#include "player.h"
#include "report.h"
#include "table_checks.h"
#include "verdict.h"

enum { TAIL_SIZE = 2000, MOST_OPTIONS = 64, MOST_CRASHES = 5, MESSAGE_SIZE = 2048 };
enum { EX_WRONG = 2 };

/* Process-wide: the options of the command line. */
static struct {
  const char *library, *folder, *report, *words[64], *only[256];
  int word_count, only_count, level;
  double limit;
  PJRT_NamedValue options[MOST_OPTIONS];
  size_t option_count;
} given = {.folder = NULL, .level = 4, .limit = 30};

static double now(void) {
  struct timespec found;
  clock_gettime(CLOCK_MONOTONIC, &found);
  return (double)found.tv_sec + (double)found.tv_nsec / 1e9;
}

/* Process-wide: the pipe for this child's messages. */
static int channel;

/* Writes a message: a letter, a number, and texts that end with NUL. */
static void say(char kind, long number, const char* a, const char* b) {
  char text[MESSAGE_SIZE];
  int used = snprintf(text, sizeof text, "%c %ld\t%.500s\t%.900s", kind, number, a, b);
  for (int i = 2; i < used; i++)
    if (text[i] == '\n') text[i] = ' ';
  text[used++] = '\n';
  for (int done = 0; done < used;) {
    ssize_t wrote = write(channel, text + done, (size_t)(used - done));
    if (wrote < 0 && errno != EINTR) _exit(EX_WRONG);
    if (wrote > 0) done += (int)wrote;
  }
}

static void say_client(void) {
  char devices[1000] = "";
  for (int i = 0; i < client.count && strlen(devices) < 800; i++) {
    char kind[64];
    snprintf(kind, sizeof kind, "%s", client.kinds[i]);
    for (char* c = kind; *c; c++)
      if (*c == '"' || *c == '\\' || *c < 32) *c = ' ';
    snprintf(devices + strlen(devices), sizeof devices - strlen(devices),
             "%s{\"id\": %d, \"kind\": \"%s\"}", i ? ", " : "", client.ids[i], kind);
  }
  say('V', api->pjrt_api_version.minor_version, client.version, "");
  say('P', client.count, client.platform, devices);
}

/* Runs the remaining checks, in order. Ends this process. */
static void run_child(const Result* results, bool with_client) {
  const char* fault = load(given.library);
  if (fault) {
    say('L', 0, fault, "");
    _exit(0);
  }
  say('V', api->pjrt_api_version.minor_version, "", "");
  if (with_client) {
    say('S', 0, "", "");
    if (initialize() || start_client(given.options, given.option_count)) {
      say('F', error_code, error_text, "");
      _exit(0);
    }
    say_client();
  }
  for (size_t i = 0; i < kit.count; i++) {
    const Check* check = &kit.checks[i];
    if (results[i].verdict >= 0 || (check->kind != TABLE) != with_client) continue;
    say('B', (long)i, "", "");
    Result found = with_client ? play(check) : check_table(check->id);
    say('E', (long)i * 16 + found.verdict * 2 + found.applies, found.expected, found.got);
  }
  _exit(0); /* without the library's exit code, whose faults belong to no check */
}

/* Process-wide: the state of the run. */
static struct {
  Result* results;
  double slowest;
  long hung; /* the first check that exceeded its limit, or -1 */
  int chapters_given_up, crashes;
  char given_up[64][64], crashed[64];
  char platform[128], version[256], devices[1100], tail[TAIL_SIZE + 1];
  int minor;
  bool started;
} state = {.hung = -1};

static size_t chapter_size(const char* id) { return strcspn(id, "."); }

static bool is_given_up(const char* id) {
  for (int i = 0; i < state.chapters_given_up; i++)
    if (strlen(state.given_up[i]) == chapter_size(id) &&
        !strncmp(state.given_up[i], id, chapter_size(id)))
      return true;
  return false;
}

static void give_up(const char* id) {
  if (is_given_up(id) || state.chapters_given_up == 64) return;
  snprintf(state.given_up[state.chapters_given_up++], 64, "%.*s", (int)chapter_size(id), id);
}

/* Returns a check's present limit in seconds: as in the kit, it is lower after a check has hung. */
static double find_limit(void) {
  if (state.hung < 0) return given.limit;
  double most = given.limit / 3 > 10 ? given.limit / 3 : 10;
  most = most < given.limit ? most : given.limit;
  double first = 5 * state.slowest > 3 ? 5 * state.slowest : 3;
  double each = (first < most ? first : most) / (1 + state.chapters_given_up);
  double least = 2 * state.slowest > 1 ? 2 * state.slowest : 1;
  double found = each > least ? each : least;
  return found < most ? found : most;
}

static void record(size_t i, Result result) {
  if (state.results[i].verdict >= 0) return;
  state.results[i] = result;
  if (result.seconds > state.slowest) state.slowest = result.seconds;
  const char* id = kit.checks[i].id;
  if (result.verdict == CRASH) {
    bool same = strlen(state.crashed) == chapter_size(id) &&
                !strncmp(state.crashed, id, chapter_size(id));
    state.crashes = same ? state.crashes + 1 : 1;
    snprintf(state.crashed, sizeof state.crashed, "%.*s", (int)chapter_size(id), id);
    if (state.crashes >= MOST_CRASHES) give_up(id);
  } else if (result.verdict != NOT_RUN) {
    state.crashes = 0;
  }
  if (result.verdict > REFUSED && result.verdict < WAIVED)
    printf("%s %s\n  %s\n  expected: %s\n  got:      %s\n", NAMES[result.verdict], id,
           kit.checks[i].title, result.expected, result.got);
  if (state.chapters_given_up) {
    for (size_t k = 0; k < kit.count; k++)
      if (state.results[k].verdict < 0 && is_given_up(kit.checks[k].id))
        state.results[k] = not_run(true, "its chapter was given up; --check runs it alone");
  }
}

static void record_rest(bool with_client, Result result) {
  for (size_t i = 0; i < kit.count; i++)
    if (state.results[i].verdict < 0 && (!with_client || kit.checks[i].kind != TABLE))
      state.results[i] = result;
}

/* Keeps the last characters of a child's standard error. */
static void keep_tail(const char* text, size_t size) {
  size_t have = strlen(state.tail);
  for (size_t i = 0; i < size; i++) {
    if (have == TAIL_SIZE) memmove(state.tail, state.tail + 1, have--);
    state.tail[have++] = text[i] ? text[i] : ' ';
    state.tail[have] = 0;
  }
}

/* Returns the result of a check that was open when its process crashed or exceeded its limit. */
static Result end_result(int verdict, const char* said) {
  const char* tail = state.tail;
  for (int lines = 0; tail < state.tail + strlen(state.tail); tail++) {
    size_t left = strlen(tail);
    lines = 0;
    for (size_t i = 0; i + 1 < left; i++) lines += tail[i] == '\n';
    if (left < 400 && lines < 6) break;
  }
  Result found = fail("the process to live on and the check to end", "%s%s%s", said,
                      *tail ? "; the last lines of its stderr: " : "", tail);
  found.verdict = verdict;
  return found;
}

typedef struct {
  long open;      /* the check that is open; -1: none, -2: the client starts */
  double began;
  bool progress;
} Watch;

/* Reads one message of a child. */
static void hear(char* line, Watch* watch) {
  char kind = *line;
  char* rest = line + 1;
  long number = strtol(rest, &rest, 10);
  char *a = *rest ? rest + 1 : rest, *b = strchr(a, '\t');
  if (b) *b++ = 0;
  if (!b) b = a + strlen(a);
  size_t i = (size_t)(kind == 'E' ? number / 16 : number);
  if (kind == 'B') {
    *watch = (Watch){(long)i, now(), true};
    *state.tail = 0;
  } else if (kind == 'E' && i < kit.count) {
    Result found = {.verdict = (int)(number / 2 % 8), .applies = number % 2 != 0};
    snprintf(found.expected, sizeof found.expected, "%s", a);
    snprintf(found.got, sizeof found.got, "%s", b);
    found.seconds = now() - watch->began;
    watch->open = -1;
    record(i, found);
  } else if (kind == 'S') {
    *watch = (Watch){-2, now(), true};
  } else if (kind == 'V') {
    state.minor = (int)number;
    if (*a) snprintf(state.version, sizeof state.version, "%s", a);
  } else if (kind == 'P') {
    watch->open = -1;
    state.started = true;
    snprintf(state.platform, sizeof state.platform, "%s", a);
    snprintf(state.devices, sizeof state.devices, "%s", b);
  } else if (kind == 'L') {
    fprintf(stderr, "%s cannot be loaded: %s\n", given.library, a);
    exit(EX_WRONG);
  } else if (kind == 'F') {
    watch->open = -1;
    /* FAILED_PRECONDITION, NOT_FOUND and UNAVAILABLE: there is no device */
    bool absent = number == 5 || number == 9 || number == 14;
    printf("%s: no client could be started: %s\n", absent ? "NO-HARDWARE" : "FAIL", a);
    Result found = not_run(true, a);
    found.verdict = absent ? NO_HARDWARE : NOT_RUN;
    for (size_t k = 0; k < kit.count; k++)
      if (!absent && !strcmp(kit.checks[k].id, "client.create"))
        state.results[k] = fail("a client", "%s", a);
    record_rest(true, found);
  }
}

/* Ends a child that exceeded its limit, with its children. */
static void end_child(pid_t child) {
  kill(-child, SIGKILL);
  kill(child, SIGKILL);
}

/* Runs one child until it ends; returns whether checks may remain. */
static bool run_one(bool with_client) {
  int said[2], errors[2];
  if (pipe(said) || pipe(errors)) {
    perror("pipe");
    exit(EX_WRONG);
  }
  fflush(stdout);
  *state.tail = 0;
  pid_t child = fork();
  if (child < 0) {
    perror("fork");
    exit(EX_WRONG);
  }
  if (child == 0) {
    setpgid(0, 0);
    channel = said[1];
    close(said[0]);
    close(errors[0]);
    dup2(errors[1], 2);
    dup2(errors[1], 1); /* a library's output is not part of the report */
    run_child(state.results, with_client);
  }
  close(said[1]);
  close(errors[1]);
  Watch watch = {-1, now(), false};
  char buffer[4 * MESSAGE_SIZE];
  size_t used = 0;
  bool late = false, open = true;
  double limit = 0;
  while (open) {
    limit = watch.open == -2 ? given.limit * 2 : find_limit();
    double left = watch.began + limit - now();
    struct pollfd waits[2] = {{.fd = said[0], .events = POLLIN}, {.fd = errors[0], .events = POLLIN}};
    int ready = poll(waits, 2, left > 0 ? (int)(left * 1000) + 1 : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      late = true;
      end_child(child);
      break;
    }
    if (waits[1].revents) {
      char text[1024];
      ssize_t size = read(errors[0], text, sizeof text);
      if (size > 0) keep_tail(text, (size_t)size);
    }
    if (waits[0].revents) {
      ssize_t size = read(said[0], buffer + used, sizeof buffer - 1 - used);
      if (size <= 0) open = false;
      if (size > 0) used += (size_t)size;
      buffer[used] = 0;
      char *line = buffer, *end;
      while ((end = strchr(line, '\n'))) {
        *end = 0;
        hear(line, &watch);
        line = end + 1;
      }
      used -= (size_t)(line - buffer);
      memmove(buffer, line, used + 1);
    }
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  end_child(child); /* processes that it left in its group */
  struct pollfd rest = {.fd = errors[0], .events = POLLIN};
  char text[1024];
  ssize_t size;
  while (poll(&rest, 1, 0) > 0 && (size = read(errors[0], text, sizeof text)) > 0)
    keep_tail(text, (size_t)size);
  close(said[0]);
  close(errors[0]);
  if (watch.open == -1 && !late) return false;
  char what[100];
  if (late)
    snprintf(what, sizeof what, "it had not ended after %.3g s", limit);
  else if (WIFSIGNALED(status))
    snprintf(what, sizeof what, "the process ended by signal %d", WTERMSIG(status));
  else
    snprintf(what, sizeof what, "the process ended with exit code %d", WEXITSTATUS(status));
  Result found = end_result(late ? TIMEOUT : CRASH, what);
  if (watch.open == -2 || watch.open == -1) {
    printf("%s: a client could not be started: %s\n", NAMES[found.verdict], found.got);
    for (size_t k = 0; k < kit.count; k++)
      if (!strcmp(kit.checks[k].id, "client.create")) state.results[k] = found;
    record_rest(true, not_run(true, "client.create: the process did not live on"));
    return false;
  }
  found.seconds = now() - watch.began;
  size_t i = (size_t)watch.open;
  if (late && state.hung >= 0) {
    give_up(kit.checks[i].id);
    if (limit < given.limit) found = not_run(true, "it had not ended in the short time that is "
                                                   "left where another check hangs");
  }
  if (late && state.hung < 0) state.hung = watch.open;
  record(i, found);
  return true;
}

static bool is_waiting(bool with_client) {
  for (size_t i = 0; i < kit.count; i++)
    if (state.results[i].verdict < 0 && (kit.checks[i].kind != TABLE) == with_client) return true;
  return false;
}

static bool is_selected(const Check* check) {
  if (check->level > given.level) return false;
  for (int i = 0; i < given.word_count; i++)
    if (!strstr(check->id, given.words[i])) return false;
  bool found = !given.only_count;
  for (int i = 0; i < given.only_count; i++) found |= !strcmp(check->id, given.only[i]);
  return found;
}

static void add_option(char* text) {
  char* value = strchr(text, '=');
  if (!value || given.option_count == MOST_OPTIONS) {
    fputs("--option takes KEY=VALUE\n", stderr);
    exit(EX_WRONG);
  }
  *value++ = 0;
  PJRT_NamedValue* made = &given.options[given.option_count++];
  made->struct_size = PJRT_NamedValue_SIZE;
  made->name = text;
  made->name_size = strlen(text);
  made->value_size = 1;
  char* end;
  long long number = strtoll(value, &end, 10);
  if (*value && !*end) {
    made->type = PJRT_NamedValue_Type_kInt64;
    made->int64_value = number;
  } else if (!strcmp(value, "true") || !strcmp(value, "false")) {
    made->type = PJRT_NamedValue_Type_kBool;
    made->bool_value = *value == 't';
  } else {
    made->type = PJRT_NamedValue_Type_kString;
    made->string_value = value;
    made->value_size = strlen(value);
  }
}

static const char USAGE[] =
    "usage: runner LIBRARY [--checks DIR] [--option KEY=VALUE]... [--check ID]... [-k WORD]...\n"
    "              [--level N] [--time-limit S] [--report FILE]\n"
    "Runs the checks of DIR (by default the folder of the runner) against a PJRT library.\n"
    "Exit codes: 0, nothing is wrong; 1, a check failed, crashed or hung; 2, nothing could be run.\n";

/* Returns the value of an option, from "--name=value" or from the next argument; NULL for another option. */
static char* option_value(const char* name, char** arguments, int* i) {
  size_t size = strlen(name);
  if (strncmp(arguments[*i], name, size)) return NULL;
  if (arguments[*i][size] == '=') return arguments[*i] + size + 1;
  if (arguments[*i][size] || !arguments[*i + 1]) return NULL;
  return arguments[++*i];
}

static void read_arguments(char** arguments) {
  for (int i = 1; arguments[i]; i++) {
    char* value;
    if ((value = option_value("--checks", arguments, &i))) given.folder = value;
    else if ((value = option_value("--check", arguments, &i)) && given.only_count < 256)
      given.only[given.only_count++] = value;
    else if ((value = option_value("--option", arguments, &i))) add_option(value);
    else if ((value = option_value("-k", arguments, &i)) && given.word_count < 64)
      given.words[given.word_count++] = value;
    else if ((value = option_value("--level", arguments, &i))) given.level = atoi(value);
    else if ((value = option_value("--time-limit", arguments, &i))) given.limit = atof(value);
    else if ((value = option_value("--report", arguments, &i))) given.report = value;
    else if (*arguments[i] != '-' && !given.library) given.library = arguments[i];
    else {
      fputs(USAGE, stderr);
      exit(EX_WRONG);
    }
  }
  if (!given.library) {
    fputs(USAGE, stderr);
    exit(EX_WRONG);
  }
}

int main(int count, char** arguments) {
  (void)count;
  static char own[4096], library[4096];
  read_arguments(arguments);
  if (!realpath(given.library, library)) {
    perror(given.library);
    return EX_WRONG;
  }
  given.library = library;
  if (!given.folder) {
    ssize_t size = readlink("/proc/self/exe", own, sizeof own - 1);
    char* slash = size > 0 ? strrchr(own, '/') : NULL;
    if (slash) *slash = 0;
    given.folder = slash ? own : ".";
  }
  read_checks(given.folder);
  signal(SIGPIPE, SIG_IGN);
  double begin = now();
  state.results = allocate(kit.count * sizeof *state.results);
  size_t selected = 0;
  for (size_t i = 0; i < kit.count; i++) {
    Result* result = &state.results[i];
    if (!is_selected(&kit.checks[i])) *result = not_run(true, "it was not selected");
    else if (kit.checks[i].kind == CODE) *result = not_run(true, kit.checks[i].reason);
    else result->verdict = -1, selected++;
  }
  for (int with_client = 0; with_client < 2; with_client++)
    while (is_waiting(with_client) && run_one(with_client)) {}
  record_rest(false, not_run(true, "its process ended before it"));
  Facts facts = {given.library, state.platform, state.version, state.devices,
                 0, state.minor, now() - begin, given.limit};
  int tried = 0, bad = 0, counts[VERDICTS] = {0};
  for (size_t i = 0; i < kit.count; i++) {
    int verdict = state.results[i].verdict;
    counts[verdict]++;
    tried += verdict < WAIVED;
    bad += verdict > REFUSED && verdict < WAIVED;
  }
  printf("%zu checks: ", selected);
  for (int v = 0; v < NO_HARDWARE; v++)
    if (v != WAIVED) printf("%d %s, ", counts[v], NAMES[v]);
  printf("%d %s; %d that are code or not selected are NOT-RUN\n", counts[NO_HARDWARE],
         NAMES[NO_HARDWARE], counts[NOT_RUN]);
  if (given.report) {
    FILE* file = strcmp(given.report, "-") ? fopen(given.report, "w") : stdout;
    if (!file) {
      perror(given.report);
      return EX_WRONG;
    }
    write_report(file, state.results, &facts);
    if (file != stdout) fclose(file);
  }
  for (size_t i = 0; i < given.option_count; i++) given.options[i].name = NULL;
  free(state.results);
  return tried ? bad > 0 : EX_WRONG;
}
