// Loaded by LD_PRELOAD. Counts the program's calls that open, write, sync, rename or remove files below a folder, and
// makes one of them fail.
//
//   FAULT_BELOW   the folder; other calls are not counted
//   FAULT_LOG     a file for one line a call: number and name
//   FAULT_AT      the number of the failing call; 0: none
//   FAULT_ERROR   its errno
//   FAULT_KILLS   set: kills the program in place of the error
//   FAULT_LASTS   set: later calls fail, too, if a read-only (EROFS) or full (ENOSPC) volume would refuse them
//   FAULT_PROGRAM the program's name; its children are ignored
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int calls;

static int is_meant(void) {
  static int known = -1;
  if (known < 0) {
    const char *program = getenv("FAULT_PROGRAM");
    known = getenv("FAULT_BELOW") && (!program || strcmp(program, program_invocation_short_name) == 0);
  }
  return known;
}

// True if the call succeeds on a volume that accepts no more data.
static int needs_nothing(const char *name, int error) {
  static const char *const synced[] = {"fsync", "fdatasync", "fchmod", "chmod", "unlink", "unlinkat", "remove", "rmdir", "rename",
                                       "renameat", "renameat2"};
  for (size_t i = 0; i < sizeof synced / sizeof *synced; i++)
    if (strcmp(name, synced[i]) == 0) return error == ENOSPC || i < 2;
  return 0;
}

// True if this call fails, or an earlier one failed for good.
static int fails(const char *name, const char *path, int reads) {
  int number = atomic_fetch_add(&calls, 1) + 1;
  const char *log = getenv("FAULT_LOG"), *at = getenv("FAULT_AT"), *error = getenv("FAULT_ERROR");
  if (log) {
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%d %s %s\n", number, name, path);
    int file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) {
      syscall(SYS_write, file, line, length);
      syscall(SYS_close, file);
    }
  }
  int first = at ? atoi(at) : 0, what = error ? atoi(error) : EIO;
  if (!first || number < first) return 0;
  if (getenv("FAULT_KILLS")) kill(getpid(), SIGKILL);
  if (getenv("FAULT_LASTS") ? reads || needs_nothing(name, what) : number > first) return 0;
  errno = what;
  return 1;
}

static int is_below(const char *path) {
  const char *folder = getenv("FAULT_BELOW");
  return strncmp(path, folder, strlen(folder)) == 0;
}

static int of_descriptor(const char *name, int descriptor) {
  if (!is_meant() || descriptor < 3) return 0;
  char link[64], path[PATH_MAX + 1];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX);
  if (length < 0) return 0;
  path[length] = 0;
  struct stat status;
  if (!is_below(path) || fstat(descriptor, &status) != 0) return 0;
  return (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) && fails(name, path, 0);
}

static int of_path(const char *name, int directory, const char *path, int reads) {
  if (!is_meant()) return 0;
  if (path[0] == '/') return is_below(path) && fails(name, path, reads);
  char link[64], folder[PATH_MAX + 1];
  if (directory == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
  else snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, folder, PATH_MAX);
  if (length < 0) return 0;
  folder[length] = 0;
  return is_below(folder) && fails(name, path, reads);
}

#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define READS(flags) (((flags) & (O_ACCMODE | O_CREAT)) == O_RDONLY)

#define OPEN(name)                                                                      \
  int name(const char *path, int flags, ...) {                                          \
    va_list arguments;                                                                  \
    va_start(arguments, flags);                                                         \
    mode_t mode = va_arg(arguments, mode_t);                                            \
    va_end(arguments);                                                                  \
    NEXT(name);                                                                         \
    return of_path(#name, AT_FDCWD, path, READS(flags)) ? -1 : next(path, flags, mode); \
  }
#define OPEN_AT(name)                                                                   \
  int name(int directory, const char *path, int flags, ...) {                           \
    va_list arguments;                                                                  \
    va_start(arguments, flags);                                                         \
    mode_t mode = va_arg(arguments, mode_t);                                            \
    va_end(arguments);                                                                  \
    NEXT(name);                                                                         \
    return of_path(#name, directory, path, READS(flags)) ? -1 : next(directory, path, flags, mode); \
  }
OPEN(open) OPEN(open64) OPEN_AT(openat) OPEN_AT(openat64)

#define STREAM(name)                                                                    \
  FILE *name(const char *path, const char *mode) {                                      \
    NEXT(name);                                                                         \
    return of_path(#name, AT_FDCWD, path, *mode == 'r') ? NULL : next(path, mode);      \
  }
STREAM(fopen) STREAM(fopen64)

#define CALL(result, failed, name, parameters, arguments, condition)                    \
  result name parameters {                                                              \
    NEXT(name);                                                                         \
    return condition ? failed : next arguments;                                         \
  }
CALL(ssize_t, -1, write, (int d, const void *b, size_t n), (d, b, n), of_descriptor("write", d))
CALL(ssize_t, -1, pwrite, (int d, const void *b, size_t n, off_t o), (d, b, n, o), of_descriptor("pwrite", d))
CALL(ssize_t, -1, pwrite64, (int d, const void *b, size_t n, off64_t o), (d, b, n, o), of_descriptor("pwrite64", d))
CALL(ssize_t, -1, writev, (int d, const struct iovec *v, int n), (d, v, n), of_descriptor("writev", d))
CALL(int, -1, ftruncate, (int d, off_t n), (d, n), of_descriptor("ftruncate", d))
CALL(int, -1, fsync, (int d), (d), of_descriptor("fsync", d))
CALL(int, -1, fdatasync, (int d), (d), of_descriptor("fdatasync", d))
CALL(ssize_t, -1, sendfile, (int d, int i, off_t *o, size_t n), (d, i, o, n), of_descriptor("sendfile", d))
CALL(int, -1, chmod, (const char *p, mode_t m), (p, m), of_path("chmod", AT_FDCWD, p, 0))
CALL(int, -1, mkstemp, (char *p), (p), of_path("mkstemp", AT_FDCWD, p, 0))
CALL(int, -1, mkostemp, (char *p, int f), (p, f), of_path("mkostemp", AT_FDCWD, p, 0))
CALL(int, -1, fchmod, (int d, mode_t m), (d, m), of_descriptor("fchmod", d))
// A stream writes when its buffer is full, flushed or closed. After an error glibc discards the buffer and keeps the
// error.
static int of_stream(const char *name, FILE *stream, size_t more) {
  if (__fpending(stream) + more < (more ? __fbufsize(stream) : 1) || !of_descriptor(name, fileno(stream))) return 0;
  int error = errno;
  __fpurge(stream);
  stream->_flags |= 0x20;
  errno = error;
  return 1;
}

CALL(size_t, 0, fwrite, (const void *b, size_t s, size_t n, FILE *f), (b, s, n, f), (s > 0 && n > 0 && of_stream("fwrite", f, s * n)))
CALL(int, EOF, fputs, (const char *t, FILE *f), (t, f), (*t && of_stream("fputs", f, strlen(t))))
CALL(int, EOF, fputc, (int c, FILE *f), (c, f), of_stream("fputc", f, 1))
CALL(int, EOF, fflush, (FILE *f), (f), (f && of_stream("fflush", f, 0)))
int fclose(FILE *stream) {
  NEXT(fclose);
  int is_lost = of_stream("fclose", stream, 0), error = errno, result = next(stream);
  if (!is_lost) return result;
  errno = error;
  return EOF;
}
CALL(int, -1, rename, (const char *a, const char *b), (a, b), of_path("rename", AT_FDCWD, a, 0))
CALL(int, -1, renameat, (int d, const char *a, int e, const char *b), (d, a, e, b), of_path("renameat", d, a, 0))
CALL(int, -1, renameat2, (int d, const char *a, int e, const char *b, unsigned f), (d, a, e, b, f), of_path("renameat2", d, a, 0))
CALL(int, -1, mkdir, (const char *p, mode_t m), (p, m), of_path("mkdir", AT_FDCWD, p, 0))
CALL(int, -1, mkdirat, (int d, const char *p, mode_t m), (d, p, m), of_path("mkdirat", d, p, 0))
CALL(int, -1, rmdir, (const char *p), (p), of_path("rmdir", AT_FDCWD, p, 0))
CALL(int, -1, unlink, (const char *p), (p), of_path("unlink", AT_FDCWD, p, 0))
CALL(int, -1, remove, (const char *p), (p), of_path("remove", AT_FDCWD, p, 0))
CALL(int, -1, unlinkat, (int d, const char *p, int f), (d, p, f), of_path("unlinkat", d, p, 0))
CALL(int, -1, symlink, (const char *a, const char *b), (a, b), of_path("symlink", AT_FDCWD, b, 0))
CALL(int, -1, link, (const char *a, const char *b), (a, b), of_path("link", AT_FDCWD, b, 0))
CALL(int, -1, linkat, (int d, const char *a, int e, const char *b, int f), (d, a, e, b, f), of_path("linkat", e, b, 0))
