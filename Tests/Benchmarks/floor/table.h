// A report table: a CSV file, and a sheet if there is a workbook.
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xlsxwriter.h>

#include "stream.h"

typedef struct {
  lxw_workbook* workbook;  // NULL: CSV only
  lxw_format *header, *time, *day, *money[5];
} Book;

typedef struct {
  char* bytes;
  size_t used, capacity;
} Buffer;

typedef struct {
  int file;
  Buffer csv;
  bool is_first_cell;
  const Book* book;
  lxw_worksheet* sheet;
  uint32_t row;
  uint16_t column;
} Table;

void book_open(Book* book, const char* directory);
void book_close(Book* book);
// - header: comma-separated names of the columns.
void table_open(Table* table, const Book* book, const char* directory, const char* file, const char* sheet,
                const char* header);
void table_close(Table* table);

// NONE leaves a cell empty, like NULL.
void put_text(Table* table, const char* text);
void put_field(Table* table, const Stream* stream, int column);
void put_count(Table* table, int64_t number);
void put_money(Table* table, int64_t minor_units, int digits);
// Microseconds since 1970.
void put_time(Table* table, int64_t instant);
// The day in UTC of microseconds since 1970.
void put_day(Table* table, int64_t instant);
void put_nothing(Table* table);
void end_row(Table* table);

int print_money(char* target, int64_t minor_units, int digits);

#endif
