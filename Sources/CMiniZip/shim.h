#ifndef NIGHT_AUDIT_CMINIZIP_SHIM_H
#define NIGHT_AUDIT_CMINIZIP_SHIM_H

#include <unzip.h>

// Swift imports no macros with a cast or a sign in brackets; these are the codes that a reader tells apart.
static const int NA_UNZ_OK = UNZ_OK;
static const int NA_UNZ_END_OF_LIST = UNZ_END_OF_LIST_OF_FILE;
// unzLocateFile's comparison: OPC part names do not depend on case (ECMA-376 part 2, 6.2.2.3).
static const int NA_UNZ_ANY_CASE = 2;

#endif
