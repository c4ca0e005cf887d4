#define _GNU_SOURCE
#include "system_calls.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>

int file_exchange(const char *first, const char *second) {
  return renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE);
}

int file_rename_exclusively(const char *from, const char *to) {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

int memory_return_blocks_from(int bytes) { return mallopt(M_MMAP_THRESHOLD, bytes); }
