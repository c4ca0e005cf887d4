#define _GNU_SOURCE
#include "system_calls.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int file_open_nameless(const char *directory, int mode) {
  return open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

int file_write_all(int descriptor, const void *bytes, size_t count) {
  const char *rest = bytes;
  while (count > 0) {
    ssize_t written = write(descriptor, rest, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return -1;
    rest += written;
    count -= (size_t)written;
  }
  return 0;
}

int file_write_durably(int descriptor, const void *bytes, size_t count, int mode) {
  if (file_write_all(descriptor, bytes, count) != 0 || fchmod(descriptor, mode) != 0) return -1;
  return fsync(descriptor);
}

int directory_synchronize(const char *path) {
  int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  int result = fsync(descriptor);
  int code = errno;
  close(descriptor);
  errno = code;
  return result;
}

int file_open_temporary(const char *directory) {
  int descriptor = file_open_nameless(directory, 0600);
  if (descriptor >= 0) return descriptor;
  char path[PATH_MAX];
  // mkostemp(3) creates and opens it atomically, under an unpredictable name.
  if (snprintf(path, sizeof path, "%s/night-audit-XXXXXX", directory) >= (int)sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  descriptor = mkostemp(path, O_CLOEXEC);
  if (descriptor >= 0) unlink(path);
  return descriptor;
}

int file_name_nameless(int descriptor, const char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  return linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

int file_exchange(const char *first, const char *second) {
  return renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE);
}

int file_rename_exclusively(const char *from, const char *to) {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

int file_rename_exclusively_at(int from_directory, const char *from, int to_directory, const char *to) {
  return renameat2(from_directory, from, to_directory, to, RENAME_NOREPLACE);
}

int file_open_regular(const char *path, unsigned *owner, unsigned *mode) {
  // Without O_NONBLOCK, opening a named pipe would wait for its writer.
  int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  struct stat status;
  int error = 0;
  if (fstat(descriptor, &status) != 0) error = errno;
  else if (S_ISDIR(status.st_mode)) error = EISDIR;
  else if (!S_ISREG(status.st_mode)) error = ESPIPE;
  if (error) {
    close(descriptor);
    errno = error;
    return -1;
  }
  *owner = status.st_uid;
  *mode = status.st_mode & 07777;
  return descriptor;
}

const char *file_open_problem(int code) {
  switch (code) {
    // ENXIO: a socket, or a device without hardware.
    case ENXIO:
    case ESPIPE: return "is a pipe, a socket or a device; name a regular file";
    case EISDIR: return "is a directory; name a file";
    case ENOENT: return "does not exist";
    case EACCES: return "cannot be read by this user";
    default: return strerror(code);
  }
}

int file_mode_at(int directory, const char *name) {
  struct stat status;
  return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? (int)status.st_mode : -1;
}

int file_mode(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 ? (int)status.st_mode : -1;
}

int directory_is_mount_point(const char *path) {
  struct statx found;
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0, &found) != 0) return -1;
  // linux/stat.h: STATX_ATTR_MOUNT_ROOT, which older headers lack.
  return (found.stx_attributes & found.stx_attributes_mask & 0x2000) != 0;
}

int memory_return_blocks_from(int bytes) { return mallopt(M_MMAP_THRESHOLD, bytes); }

void process_guard_memory(void) {
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

unsigned long process_allow_files(void) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return ULONG_MAX;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_max;
}

// True if the stream is a pipe whose reader has gone, as with head(1) (poll(2), POLLERR).
static int has_lost_reader(FILE *stream) {
  struct pollfd descriptor = {fileno(stream), POLLOUT, 0};
  return poll(&descriptor, 1, 0) == 1 && (descriptor.revents & POLLERR) != 0;
}

static int is_unwritten(FILE *stream) {
  // Some volumes report a failed write only at close (close(2)).
  const int has_failed = fflush(stream) != 0 || ferror(stream) || (stream == stdout && close(dup(fileno(stream))) != 0);
  return has_failed && !has_lost_reader(stream);
}

static void end_of_streams(int status, void *argument) {
  // Other exit statuses already report a failure.
  const int is_report = status >= 0 && status <= 4;
  // A bitwise or, so that both are flushed.
  const int is_lost = is_unwritten(stdout) | is_unwritten(stderr);
  if (!is_report || !is_lost) return;
  // Standard error may still have a reader.
  dprintf(STDERR_FILENO, "%s: what it printed was not written: the disk is full, or the stream is closed\n",
          program_invocation_short_name);
  _exit(*(const int *)argument);
}

void streams_guard(int status) {
  static int status_of_loss;
  status_of_loss = status;
  // open uses the lowest free descriptor, so streams are filled from 0 on. Writes to /dev/full fail.
  for (int stream = 0; stream <= 2; stream++) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    if (open(stream == 0 ? "/dev/null" : "/dev/full", O_RDWR) == -1) open("/dev/null", O_RDONLY);
  }
  // A write to a pipe without a reader then fails with an error, which does not end the night.
  signal(SIGPIPE, SIG_IGN);
  on_exit(end_of_streams, &status_of_loss);
}

void standard_error_write(const char *bytes, size_t count) {
  fwrite(bytes, 1, count, stderr);
  fflush(stderr);
}
