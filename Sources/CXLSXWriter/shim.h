#ifndef NIGHT_AUDIT_CXLSXWRITER_SHIM_H
#define NIGHT_AUDIT_CXLSXWRITER_SHIM_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xlsxwriter.h>

// What differs between releases of libxlsxwriter (1.1.4 to 1.2.x), and what it does not tell, each with its reason.

/// A workbook whose temporary files go to a directory.
///
/// `lxw_workbook_options` grew in 1.1.5 (`output_buffer`), so it is never initialised field by field.
static inline lxw_workbook *_Nullable na_workbook_new(const char *_Nonnull path, const char *_Nonnull directory) {
  lxw_workbook_options options;
  memset(&options, 0, sizeof options);
  options.tmpdir = (char *)directory;
  return workbook_new_opt(path, &options);
}

// Texts of options are `char *` up to 1.1.4 and `const char *` later. The library copies them.

static inline void na_set_description(lxw_chart_options *_Nonnull options, char *_Nullable text) {
  options->description = text;
}

static inline void na_set_name(lxw_table_options *_Nonnull options, char *_Nullable text) { options->name = text; }

static inline void na_set_header(lxw_table_column *_Nonnull column, char *_Nullable text) { column->header = text; }

static inline void na_set_value(lxw_conditional_format *_Nonnull options, char *_Nullable text) {
  options->value_string = text;
}

static inline void na_set_properties(
    lxw_doc_properties *_Nonnull properties, char *_Nullable title, char *_Nullable subject, char *_Nullable author,
    char *_Nullable comments) {
  properties->title = title;
  properties->subject = subject;
  properties->author = author;
  properties->comments = comments;
}

/// - Parameter list: ends with NULL.
static inline void na_set_list(
    lxw_data_validation *_Nonnull validation, char *_Nullable *_Nullable list) {
  validation->value_list = (void *)list;
}

/// Writes the last row of a streamed sheet and flushes all rows to the sheet's temporary file.
///
/// The library checks no return value of a write: a full disk would make a shorter sheet.
/// - Returns: the bytes of all rows; -1 with errno after a write that failed.
static inline long na_flush_rows(lxw_worksheet *_Nonnull sheet) {
  errno = 0;
  lxw_worksheet_write_single_row(sheet);
  if (fflush(sheet->optimize_tmpfile) == 0 && !ferror(sheet->optimize_tmpfile)) return ftell(sheet->optimize_tmpfile);
  if (!errno) errno = EIO;
  return -1;
}

/// Closes that file, which freeing a workbook does not.
static inline void na_discard_rows(lxw_worksheet *_Nonnull sheet) {
  if (sheet->optimize_tmpfile) fclose(sheet->optimize_tmpfile);
  sheet->optimize_tmpfile = NULL;
}

// glibc declares memmem(3) under _GNU_SOURCE alone, which Swift's import of the C library does not define.
extern void *_Nullable na_find(
    const void *_Nonnull bytes, size_t size, const void *_Nonnull wanted, size_t wantedSize) __asm__("memmem");

#endif
