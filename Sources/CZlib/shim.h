#ifndef NIGHT_AUDIT_CZLIB_SHIM_H
#define NIGHT_AUDIT_CZLIB_SHIM_H

#include <zlib.h>

// zlib's own beginnings are macros, which Swift does not see. 16 more than the window's bits means gzip alone.

static inline int night_audit_inflate_gzip(z_stream *stream) { return inflateInit2(stream, 15 + 16); }

static inline int night_audit_deflate_gzip(z_stream *stream, int level) {
  return deflateInit2(stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}

#endif
