#include "table.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stream.h"

static const int64_t power[] = {1, 10, 100, 1000, 10000};

// MARK: The workbook

void book_open(Book* book, const char* directory) {
  char path[4096];
  snprintf(path, sizeof path, "%s/night-audit.xlsx", directory);
  lxw_workbook_options options = {.constant_memory = LXW_TRUE, .tmpdir = (char*)directory, .use_zip64 = LXW_TRUE};
  book->workbook = workbook_new_opt(path, &options);
  if (!book->workbook) fail(path, "cannot be written");
  book->header = workbook_add_format(book->workbook);
  format_set_bold(book->header);
  book->time = workbook_add_format(book->workbook);
  format_set_num_format(book->time, "yyyy-mm-dd hh:mm:ss");
  const char* patterns[] = {"#,##0", "#,##0.0", "#,##0.00", "#,##0.000", "#,##0.0000"};
  for (int digits = 0; digits <= MAX_DIGITS; digits++) {
    book->money[digits] = workbook_add_format(book->workbook);
    format_set_num_format(book->money[digits], patterns[digits]);
  }
}

void book_close(Book* book) {
  lxw_error error = workbook_close(book->workbook);
  if (error) fail("night-audit.xlsx", lxw_strerror(error));
}

static void check(lxw_error error) {
  if (error) fail("a cell", lxw_strerror(error));
}

// MARK: Bytes

static void write_all(int file, const char* bytes, size_t length) {
  while (length > 0) {
    ssize_t written = write(file, bytes, length);
    if (written < 0) fail("writing", strerror(errno));
    bytes += written;
    length -= (size_t)written;
  }
}

// Room for at least `more` bytes, given that the buffer may be grown.
static char* reserve(Buffer* buffer, size_t more) {
  if (buffer->used + more > buffer->capacity) {
    buffer->capacity = (buffer->used + more) * 2;
    buffer->bytes = realloc(buffer->bytes, buffer->capacity);
    if (!buffer->bytes) fail("memory", "there is none left");
  }
  return buffer->bytes + buffer->used;
}

static void append(Buffer* buffer, const void* bytes, size_t length) {
  memcpy(reserve(buffer, length), bytes, length);
  buffer->used += length;
}

// MARK: Cells as text

int print_money(char* target, int64_t minor_units, int digits) {
  char reversed[32];
  int length = 0, at = 0;
  uint64_t rest = minor_units < 0 ? 0 - (uint64_t)minor_units : (uint64_t)minor_units;
  do {
    if (length == digits && digits > 0) reversed[length++] = '.';
    reversed[length++] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0 || length <= digits + (digits > 0));
  if (minor_units < 0) target[at++] = '-';
  while (length > 0) target[at++] = reversed[--length];
  return at;
}

static void print_two(char* target, int64_t number) {
  target[0] = (char)('0' + number / 10);
  target[1] = (char)('0' + number % 10);
}

// The civil date of a count of days since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
static void print_date(char* target, int64_t days) {
  days += 719468;
  int64_t era = days / 146097, day_of_era = days - era * 146097;
  int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  int64_t shifted = (5 * day_of_year + 2) / 153, month = shifted < 10 ? shifted + 3 : shifted - 9;
  int64_t year = year_of_era + era * 400 + (month <= 2);
  print_two(target, year / 100);
  print_two(target + 2, year % 100);
  target[4] = '-';
  print_two(target + 5, month);
  target[7] = '-';
  print_two(target + 8, day_of_year - (153 * shifted + 2) / 5 + 1);
}

static void print_instant(char* target, int64_t instant) {
  int64_t seconds = instant / 1000000, of_day = seconds % 86400;
  print_date(target, seconds / 86400);
  target[10] = 'T';
  print_two(target + 11, of_day / 3600);
  target[13] = ':';
  print_two(target + 14, of_day / 60 % 60);
  target[16] = ':';
  print_two(target + 17, of_day % 60);
  target[19] = 'Z';
}

// RFC 4180, and no cell that a spreadsheet would run as a formula.
static void append_quoted(Buffer* csv, const char* text, size_t length) {
  bool is_formula = length > 0 && strchr("=+-@\t\r", text[0]);
  bool needs_quotes = false;
  for (size_t index = 0; index < length && !needs_quotes; index++) {
    needs_quotes = text[index] == ',' || text[index] == '"' || text[index] == '\r' || text[index] == '\n';
  }
  char *start = reserve(csv, 2 * length + 3), *at = start;
  if (needs_quotes) *at++ = '"';
  if (is_formula) *at++ = '\'';
  if (needs_quotes) {
    for (size_t index = 0; index < length; index++) {
      if (text[index] == '"') *at++ = '"';
      *at++ = text[index];
    }
    *at++ = '"';
  } else {
    memcpy(at, text, length);
    at += length;
  }
  csv->used += (size_t)(at - start);
}

// MARK: Cells

static void next_cell(Table* table) {
  if (!table->is_first_cell) append(&table->csv, ",", 1);
  table->is_first_cell = false;
}

void put_text(Table* table, const char* text) {
  size_t length = strlen(text);
  if (table->is_sorted_later) {
    append(&table->packed, "t", 1);
    append(&table->packed, text, length + 1);
    return;
  }
  next_cell(table);
  append_quoted(&table->csv, text, length);
  if (table->sheet && length > 0) check(worksheet_write_string(table->sheet, table->row, table->column, text, NULL));
  table->column++;
}

static void pack_number(Table* table, char tag, int64_t number) {
  append(&table->packed, &tag, 1);
  append(&table->packed, &number, 8);
}

void put_count(Table* table, int64_t number) {
  if (table->is_sorted_later) return pack_number(table, 'c', number);
  next_cell(table);
  table->csv.used += (size_t)print_money(reserve(&table->csv, 24), number, 0);
  if (table->sheet) check(worksheet_write_number(table->sheet, table->row, table->column, (double)number, NULL));
  table->column++;
}

void put_money(Table* table, int64_t minor_units, int digits) {
  if (table->is_sorted_later) return pack_number(table, (char)('0' + digits), minor_units);
  next_cell(table);
  table->csv.used += (size_t)print_money(reserve(&table->csv, 24), minor_units, digits);
  if (table->sheet) {
    double value = (double)minor_units / (double)power[digits];
    check(worksheet_write_number(table->sheet, table->row, table->column, value, table->book->money[digits]));
  }
  table->column++;
}

void put_time(Table* table, int64_t instant) {
  if (instant == NONE) return put_nothing(table);
  if (table->is_sorted_later) return pack_number(table, 'i', instant);
  next_cell(table);
  print_instant(reserve(&table->csv, 20), instant);
  table->csv.used += 20;
  if (table->sheet) {
    // Excel counts days from 1899-12-30.
    double serial = (double)(instant / 1000000) / 86400 + 25569;
    check(worksheet_write_number(table->sheet, table->row, table->column, serial, table->book->time));
  }
  table->column++;
}

void put_nothing(Table* table) {
  if (table->is_sorted_later) return append(&table->packed, "n", 1);
  next_cell(table);
  table->column++;
}

static void spool_row(Table* table) {
  if (table->count == table->capacity) {
    table->capacity = table->capacity ? table->capacity * 2 : 1024;
    table->places = realloc(table->places, table->capacity * sizeof *table->places);
    if (!table->places) fail("memory", "there is none left");
  }
  Place* place = &table->places[table->count++];
  place->offset = table->spooled;
  // The row begins with the tag and text of its key.
  memset(place->key, 0, sizeof place->key);
  memcpy(place->key, table->packed.bytes + 1, strnlen(table->packed.bytes + 1, sizeof place->key));
  append(&table->packed, "e", 1);
  write_all(table->spool, table->packed.bytes, table->packed.used);
  table->spooled += table->packed.used;
  table->packed.used = 0;
}

void end_row(Table* table) {
  if (table->is_sorted_later) return spool_row(table);
  append(&table->csv, "\r\n", 2);
  table->is_first_cell = true;
  table->row++;
  table->column = 0;
  if (table->csv.used > 1 << 17) {
    write_all(table->file, table->csv.bytes, table->csv.used);
    table->csv.used = 0;
  }
}

// MARK: Tables

void table_open(Table* table, const Book* book, const char* directory, const char* file, const char* sheet,
                const char* header) {
  memset(table, 0, sizeof *table);
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, file);
  table->file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (table->file < 0) fail(path, strerror(errno));
  table->book = book;
  table->is_first_cell = true;
  append(&table->csv, header, strlen(header));
  append(&table->csv, "\r\n", 2);
  if (!book->workbook) return;
  table->sheet = workbook_add_worksheet(book->workbook, sheet);
  if (!table->sheet) fail(sheet, "cannot be added");
  char names[1024], *rest = NULL;
  snprintf(names, sizeof names, "%s", header);
  for (char* name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
    name[0] = (char)toupper(name[0]);
    for (char* at = name; *at; at++) *at = *at == '_' ? ' ' : *at;
    check(worksheet_write_string(table->sheet, 0, table->column++, name, book->header));
  }
  check(worksheet_set_column(table->sheet, 0, (lxw_col_t)(table->column - 1), 20, NULL));
  worksheet_freeze_panes(table->sheet, 1, 0);
  table->row = 1;
  table->column = 0;
}

void table_sort_later(Table* table, const char* directory) {
  char path[4096];
  // mkstemp(3) puts letters of its own in the place of the six.
  snprintf(path, sizeof path, "%s/spool-XXXXXX", directory);
  table->spool = mkstemp(path);
  if (table->spool < 0 || unlink(path)) fail(path, strerror(errno));
  table->is_sorted_later = true;
}

static int compare_places(const void* left, const void* right) {
  return strncmp(((const Place*)left)->key, ((const Place*)right)->key, sizeof((const Place*)left)->key);
}

static void replay(Table* table, const char* at) {
  for (;;) {
    int64_t number = 0;
    char tag = *at++;
    if (tag == 'e') return end_row(table);
    if (tag == 't') {
      put_text(table, at);
      at += strlen(at) + 1;
      continue;
    }
    if (tag == 'n') {
      put_nothing(table);
      continue;
    }
    memcpy(&number, at, 8);
    at += 8;
    if (tag == 'c') {
      put_count(table, number);
    } else if (tag == 'i') {
      put_time(table, number);
    } else {
      put_money(table, number, tag - '0');
    }
  }
}

void table_close(Table* table) {
  if (table->is_sorted_later) {
    table->is_sorted_later = false;
    qsort(table->places, table->count, sizeof *table->places, compare_places);
    for (size_t index = 0; index < table->count; index++) {
      char row[2048];
      if (pread(table->spool, row, sizeof row, (off_t)table->places[index].offset) <= 0) fail("spool", strerror(errno));
      replay(table, row);
    }
    free(table->places);
    close(table->spool);
  }
  write_all(table->file, table->csv.bytes, table->csv.used);
  if (close(table->file)) fail("closing", strerror(errno));
  free(table->csv.bytes);
  free(table->packed.bytes);
}
