#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char* what, const char* why) {
  fprintf(stderr, "floor: %s: %s\n", what, why);
  exit(1);
}

static uint16_t read16(const char* at) { return (uint16_t)((uint8_t)at[0] << 8 | (uint8_t)at[1]); }

static uint32_t read32(const char* at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return __builtin_bswap32(value);
}

static uint64_t read64(const char* at) {
  uint64_t value;
  memcpy(&value, at, 8);
  return __builtin_bswap64(value);
}

PGconn* connect_reader(const char* snapshot) {
  PGconn* connection = PQconnectdb("");
  if (PQstatus(connection) != CONNECTION_OK) fail("connecting", PQerrorMessage(connection));
  char begin[256] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
  if (snapshot) {
    snprintf(begin + strlen(begin), sizeof begin - strlen(begin), "; SET TRANSACTION SNAPSHOT '%s'", snapshot);
  }
  PGresult* result = PQexec(connection, begin);
  if (PQresultStatus(result) != PGRES_COMMAND_OK) fail("beginning", PQerrorMessage(connection));
  PQclear(result);
  return connection;
}

void stream_open(Stream* stream, const char* snapshot, const char* query) {
  memset(stream, 0, sizeof *stream);
  stream->connection = connect_reader(snapshot);
  char copy[4096];
  snprintf(copy, sizeof copy, "COPY (%s) TO STDOUT (FORMAT binary)", query);
  PGresult* result = PQexec(stream->connection, copy);
  if (PQresultStatus(result) != PGRES_COPY_OUT) fail(query, PQerrorMessage(stream->connection));
  PQclear(result);
}

static void finish(Stream* stream) {
  PGresult* result = PQgetResult(stream->connection);
  if (PQresultStatus(result) != PGRES_COMMAND_OK) fail("reading", PQerrorMessage(stream->connection));
  PQclear(result);
  PQfinish(stream->connection);
  stream->ended = true;
}

bool stream_next(Stream* stream) {
  if (stream->ended) return false;
  for (;;) {
    if (stream->message) PQfreemem(stream->message);
    stream->message = NULL;
    int length = PQgetCopyData(stream->connection, &stream->message, 0);
    if (length == -2) fail("reading", PQerrorMessage(stream->connection));
    if (length == -1) {
      finish(stream);
      return false;
    }
    const char *at = stream->message, *end = at + length;
    if (!stream->started) {
      // Signature, flags and header extension share a message with the first row.
      at += 19 + read32(at + 15);
      stream->started = true;
      if (at >= end) continue;
    }
    int fields = (int16_t)read16(at);
    at += 2;
    if (fields < 0) continue;  // The trailer; a length of -1 follows at the end.
    if (fields > MAX_FIELDS) fail("reading", "too many columns");
    for (int index = 0; index < fields; index++) {
      int size = (int)read32(at);
      at += 4;
      stream->field[index] = (Field){at, size};
      if (size > 0) at += size;
    }
    if (at > end) fail("reading", "a row is cut short");
    return true;
  }
}

void copy_text(const Stream* stream, int column, char* target, int size) {
  Field field = stream->field[column];
  int length = field.length < 0 ? 0 : field.length;
  if (length >= size) fail("reading", "a text is longer than expected");
  memcpy(target, field.data, (size_t)length);
  target[length] = 0;
}

int compare_text(const Stream* stream, int column, const char* other) {
  Field field = stream->field[column];
  int length = (int)strlen(other), common = field.length < length ? field.length : length;
  int order = memcmp(field.data, other, (size_t)common);
  return order ? order : field.length - length;
}

bool text_is(const Stream* stream, int column, const char* word) {
  return !is_null(stream, column) && compare_text(stream, column, word) == 0;
}

bool boolean(const Stream* stream, int column) { return !is_null(stream, column) && stream->field[column].data[0]; }

int64_t integer(const Stream* stream, int column) {
  Field field = stream->field[column];
  switch (field.length) {
    case 8:
      return (int64_t)read64(field.data);
    case 4:
      return (int32_t)read32(field.data);
    case 2:
      return (int16_t)read16(field.data);
    default:
      return NONE;
  }
}

int64_t instant(const Stream* stream, int column) {
  // Postgres counts from 2000-01-01.
  return is_null(stream, column) ? NONE : (int64_t)read64(stream->field[column].data) + 946684800000000;
}

bool minor_units(const Stream* stream, int column, int digits, int64_t* result) {
  // PostgreSQL's numeric: digits of base 10,000, the first of weight 10,000^weight.
  Field field = stream->field[column];
  if (field.length < 8) return false;
  int count = read16(field.data), weight = (int16_t)read16(field.data + 2), sign = read16(field.data + 4);
  if (sign != 0 && sign != 0x4000) return false;
  // One group of four decimals suffices for every currency.
  int64_t value = 0;
  for (int group = 0; group <= weight + 1 || group < count; group++) {
    int digit = group < count ? read16(field.data + 8 + 2 * group) : 0;
    if (group > weight + 1) {
      if (digit) return false;
    } else if (__builtin_mul_overflow(value, 10000, &value) || __builtin_add_overflow(value, digit, &value)) {
      return false;
    }
  }
  for (int unused = MAX_DIGITS; unused > digits; unused--) {
    if (value % 10) return false;
    value /= 10;
  }
  *result = sign ? -value : value;
  return true;
}
