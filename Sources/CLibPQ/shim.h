#ifndef NIGHT_AUDIT_CLIBPQ_H
#define NIGHT_AUDIT_CLIBPQ_H

#include <libpq-fe.h>

// Swift imports no character macros, so the field codes that errors are read with are repeated as typed constants.
// https://www.postgresql.org/docs/current/libpq-exec.html#LIBPQ-PQRESULTERRORFIELD
static const int NA_DIAG_SEVERITY = PG_DIAG_SEVERITY_NONLOCALIZED;
static const int NA_DIAG_SQLSTATE = PG_DIAG_SQLSTATE;
static const int NA_DIAG_MESSAGE = PG_DIAG_MESSAGE_PRIMARY;
static const int NA_DIAG_DETAIL = PG_DIAG_MESSAGE_DETAIL;
static const int NA_DIAG_SCHEMA = PG_DIAG_SCHEMA_NAME;
static const int NA_DIAG_TABLE = PG_DIAG_TABLE_NAME;
static const int NA_DIAG_COLUMN = PG_DIAG_COLUMN_NAME;
static const int NA_DIAG_CONSTRAINT = PG_DIAG_CONSTRAINT_NAME;

#endif
