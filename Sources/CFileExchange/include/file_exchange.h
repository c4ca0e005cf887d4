#ifndef FILE_EXCHANGE_H
#define FILE_EXCHANGE_H

// renameat2(2) is behind _GNU_SOURCE, which Swift's view of glibc does not define.

/// Swaps two paths in one step. 0, or -1 with errno.
int file_exchange(const char *first, const char *second);

/// Renames without replacing: -1 with EEXIST when the new path is taken.
int file_rename_exclusively(const char *from, const char *to);

#endif
