/* Changes the clock of the program FAULT_PROGRAM by CLOCK_OFFSET seconds, and by CLOCK_JUMP more seconds from its
   CLOCK_AT-th reading on. At the end, the file CLOCK_READINGS has the number of readings. For tests only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static atomic_long readings;

static long number(const char *name) {
  const char *text = getenv(name);
  return text ? atol(text) : 0;
}

static int is_ours(void) {
  const char *program = getenv("FAULT_PROGRAM");
  return program && strcmp(program_invocation_short_name, program) == 0;
}

static long moved_by(void) {
  static long offset, jump, at;
  static atomic_int is_known;
  if (!atomic_load(&is_known)) {
    offset = is_ours() ? number("CLOCK_OFFSET") : 0;
    jump = is_ours() ? number("CLOCK_JUMP") : 0;
    at = number("CLOCK_AT");
    atomic_store(&is_known, 1);
  }
  long reading = atomic_fetch_add(&readings, 1) + 1;
  return offset + (at > 0 && reading >= at ? jump : 0);
}

int clock_gettime(clockid_t clock, struct timespec *told) {
  static int (*next)(clockid_t, struct timespec *);
  if (!next) next = dlsym(RTLD_NEXT, "clock_gettime");
  int status = next(clock, told);
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) told->tv_sec += moved_by();
  return status;
}

int gettimeofday(struct timeval *restrict told, void *restrict zone) {
  struct timespec precise;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
  told->tv_sec = precise.tv_sec;
  told->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *told) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (told) *told = precise.tv_sec;
  return precise.tv_sec;
}

__attribute__((destructor)) static void tell(void) {
  const char *path = getenv("CLOCK_READINGS");
  if (!path || !is_ours()) return;
  FILE *file = fopen(path, "w");
  if (!file) return;
  fprintf(file, "%ld", atomic_load(&readings));
  fclose(file);
}
