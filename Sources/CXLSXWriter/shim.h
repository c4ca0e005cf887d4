#ifndef NIGHT_AUDIT_CXLSXWRITER_SHIM_H
#define NIGHT_AUDIT_CXLSXWRITER_SHIM_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <xlsxwriter.h>

// glibc declares fopencookie(3) under _GNU_SOURCE alone, which Swift's import of the C library does not define.
// The layout is that of cookie_io_functions_t; another name keeps both declarations apart should that ever change.
typedef struct {
  ssize_t (*_Nullable read)(void *_Nullable cookie, char *_Nullable bytes, size_t count);
  ssize_t (*_Nullable write)(void *_Nullable cookie, const char *_Nullable bytes, size_t count);
  int (*_Nullable seek)(void *_Nullable cookie, int64_t *_Nullable offset, int origin);
  int (*_Nullable close)(void *_Nullable cookie);
} custom_stream_functions;

extern FILE *_Nullable open_custom_stream(
    void *_Nullable cookie, const char *_Nonnull mode, custom_stream_functions functions) __asm__("fopencookie");

#endif
