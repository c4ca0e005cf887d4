#ifndef SYSTEM_CALLS_H
#define SYSTEM_CALLS_H

#include <stddef.h>

// What Swift's view of glibc leaves out: renameat2(2) is behind _GNU_SOURCE, malloc.h in no module.

/// Swaps two paths in one step. 0, or -1 with errno.
int file_exchange(const char *first, const char *second);

/// Renames without replacing: -1 with EEXIST when the new path is taken.
int file_rename_exclusively(const char *from, const char *to);

/// The same below two open directories.
int file_rename_exclusively_at(int from_directory, const char *from, int to_directory, const char *to);

/// Opens a file without a name in a directory, to be read and written (O_TMPFILE, open(2)): it is gone with the process,
/// however that ends. -1 with errno, also where the volume knows none.
int file_open_nameless(const char *directory, int mode);

/// Gives such a file a name that nothing has: -1 with EEXIST when something does.
int file_name_nameless(int descriptor, const char *path);

/// Opens an empty file that nobody else sees, to be read and written; also where the volume knows none without a name. -1
/// with errno.
int file_open_temporary(const char *directory);

/// Opens a regular file for reading and stores its owner and its mode.
///
/// A pipe, a socket, a device or a directory is refused without waiting. -1 with errno; `file_open_problem` explains it.
int file_open_regular(const char *path, unsigned *owner, unsigned *mode);

/// The reason for a failure of `file_open_regular`, as a clause with the file as its subject.
const char *file_open_problem(int code);

/// Kind and mode of an entry itself, wherever a link leads (struct stat has two owners in Swift). -1 with errno.
int file_mode_at(int directory, const char *name);

/// The same of an open file.
int file_mode(int descriptor);

/// Gives every block of so many bytes or more, at most 32 MiB, pages of its own, which the system has back when the block
/// is freed. By itself glibc raises that bound to the largest block that was ever freed, and keeps what is smaller
/// (mallopt(3), M_MMAP_THRESHOLD). 1, or 0 when it was refused.
int memory_return_blocks_from(int bytes);

/// Keeps the memory of this process, and of those that it starts, out of core files and from other users' debuggers:
/// there are passwords in it.
void process_guard_memory(void);

/// Raises the limit of open files to the system's, and returns it: what does not fit into memory waits in many files.
unsigned long process_allow_files(void);

/// Makes what was written to the standard streams count: a stream that was closed before the program began is one that
/// cannot be written, and not the place of the next file that is opened; and an exit with one of the statuses of a report
/// becomes `status` when something that was written got lost. A pipe whose reader has gone loses nothing.
void streams_guard(int status);

/// Writes to the standard error stream, whose failure streams_guard finds.
void standard_error_write(const char *bytes, size_t count);

#endif
