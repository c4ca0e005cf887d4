// Rows of a query by binary COPY, one at a time.
#ifndef STREAM_H
#define STREAM_H

#include <libpq-fe.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define MAX_FIELDS 32
#define MAX_DIGITS 4
// NULL as a time or number.
#define NONE INT64_MIN

typedef struct {
  const char* data;
  int length;  // -1: NULL
} Field;

typedef struct {
  PGconn* connection;
  char* message;
  bool started;
  bool ended;
  Field field[MAX_FIELDS];
} Stream;

// Opens a connection in the snapshot; NULL takes a new one. The environment names the server.
PGconn* connect_reader(const char* snapshot);
void stream_open(Stream* stream, const char* snapshot, const char* query);
// Moves to the next row; false at the end, which closes the connection.
bool stream_next(Stream* stream);

void copy_text(const Stream* stream, int column, char* target, int size);
int compare_text(const Stream* stream, int column, const char* other);
static inline bool is_null(const Stream* stream, int column) { return stream->field[column].length < 0; }
bool text_is(const Stream* stream, int column, const char* word);
bool boolean(const Stream* stream, int column);
// NONE for NULL.
int64_t integer(const Stream* stream, int column);
// Microseconds since 1970; NONE for NULL.
int64_t instant(const Stream* stream, int column);
// A numeric in units of 10^-digits; false for a fraction of a unit.
bool minor_units(const Stream* stream, int column, int digits, int64_t* result);

_Noreturn void fail(const char* what, const char* why);

#endif
