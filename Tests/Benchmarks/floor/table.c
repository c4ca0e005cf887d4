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
  book->day = workbook_add_format(book->workbook);
  format_set_num_format(book->day, "yyyy-mm-dd");
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

// Makes room for `more` bytes.
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

// The civil date of days since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
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

// RFC 4180, with an apostrophe before formulas.
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
  next_cell(table);
  append_quoted(&table->csv, text, length);
  if (table->sheet && length > 0) check(worksheet_write_string(table->sheet, table->row, table->column, text, NULL));
  table->column++;
}

void put_field(Table* table, const Stream* stream, int column) {
  char text[512];
  copy_text(stream, column, text, sizeof text);
  put_text(table, text);
}

void put_count(Table* table, int64_t number) {
  if (number == NONE) return put_nothing(table);
  next_cell(table);
  table->csv.used += (size_t)print_money(reserve(&table->csv, 24), number, 0);
  if (table->sheet) check(worksheet_write_number(table->sheet, table->row, table->column, (double)number, NULL));
  table->column++;
}

void put_money(Table* table, int64_t minor_units, int digits) {
  if (minor_units == NONE || digits < 0) return put_nothing(table);
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

void put_day(Table* table, int64_t instant) {
  if (instant == NONE) return put_nothing(table);
  next_cell(table);
  // The time is written and left out, because the next bytes overwrite it.
  print_instant(reserve(&table->csv, 20), instant);
  table->csv.used += 10;
  if (table->sheet) {
    double serial = (double)(instant / 86400000000) + 25569;
    check(worksheet_write_number(table->sheet, table->row, table->column, serial, table->book->day));
  }
  table->column++;
}

void put_nothing(Table* table) {
  next_cell(table);
  table->column++;
}

void end_row(Table* table) {
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

void table_close(Table* table) {
  write_all(table->file, table->csv.bytes, table->csv.used);
  if (close(table->file)) fail("closing", strerror(errno));
  free(table->csv.bytes);
}
