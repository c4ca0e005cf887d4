/* Makes a program read the file TRUSTED_ROOTS in place of the system's root certificates. For tests only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *instead(const char *path) {
  const char *roots = getenv("TRUSTED_ROOTS");
  return roots && strcmp(path, "/etc/ssl/certs/ca-certificates.crt") == 0 ? roots : path;
}

FILE *fopen(const char *path, const char *mode) {
  FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
  return next(instead(path), mode);
}

FILE *fopen64(const char *path, const char *mode) {
  FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen64");
  return next(instead(path), mode);
}

int open(const char *path, int flags, ...) {
  int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  va_list list;
  va_start(list, flags);
  mode_t mode = va_arg(list, mode_t);
  va_end(list);
  return next(instead(path), flags, mode);
}
