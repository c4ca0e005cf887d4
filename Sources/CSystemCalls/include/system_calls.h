#ifndef SYSTEM_CALLS_H
#define SYSTEM_CALLS_H

#include <stddef.h>

// Functions that Swift's Glibc module lacks: renameat2(2) needs _GNU_SOURCE, malloc.h is in no module.

/// Exchanges two paths atomically. 0, or -1 with errno.
int file_exchange(const char *first, const char *second);

/// Renames without replacing: -1 with EEXIST if the new path exists.
int file_rename_exclusively(const char *from, const char *to);

/// As file_rename_exclusively, relative to two open directories.
int file_rename_exclusively_at(int from_directory, const char *from, int to_directory, const char *to);

/// Opens an unnamed file for reading and writing (O_TMPFILE, open(2)). It disappears with the process. -1 with errno,
/// also if the volume does not support it.
int file_open_nameless(const char *directory, int mode);

/// Gives an unnamed file a name: -1 with EEXIST if the name exists.
int file_name_nameless(int descriptor, const char *path);

/// Writes all bytes. -1 with errno.
int file_write_all(int descriptor, const void *bytes, size_t count);

/// Writes all bytes, sets the mode whatever the umask, and synchronizes the file with its volume. -1 with errno.
int file_write_durably(int descriptor, const void *bytes, size_t count, int mode);

/// Synchronizes the entries of a directory with its volume. -1 with errno.
int directory_synchronize(const char *path);

/// Opens an empty private file for reading and writing, also on volumes without O_TMPFILE. -1 with errno.
int file_open_temporary(const char *directory);

/// Opens a regular file for reading and stores its owner and mode.
///
/// A pipe, socket, device or directory is refused without waiting. -1 with errno, for `file_open_problem`.
int file_open_regular(const char *path, unsigned *owner, unsigned *mode);

/// The reason for a failure of `file_open_regular`, as a clause with the file as its subject.
const char *file_open_problem(int code);

/// Kind and mode of an entry, without following links (struct stat is ambiguous in Swift). -1 with errno.
int file_mode_at(int directory, const char *name);

/// Kind and mode of an open file.
int file_mode(int descriptor);

/// 1 if a file system is mounted at a path, which then cannot be renamed. 0 also before Linux 5.8, which cannot tell.
/// -1 with errno.
int directory_is_mount_point(const char *path);

/// Makes malloc use mmap from this block size, at most 32 MiB. Then free returns blocks to the system. glibc's own
/// threshold grows to the largest block ever freed (mallopt(3), M_MMAP_THRESHOLD). 1, or 0 if refused.
int memory_return_blocks_from(int bytes);

/// Keeps passwords in memory out of core files and other users' debuggers. Children write no core files either.
void process_guard_memory(void);

/// Raises the limit of open files to the hard limit and returns it. Sorting uses many temporary files.
unsigned long process_allow_files(void);

/// Makes lost output an error. A standard stream that is closed at the start becomes an unwritable one instead of the
/// next opened file, and an exit status of a report becomes `status` if output was lost. A pipe whose reader has gone
/// is no loss.
void streams_guard(int status);

/// Writes to standard error; streams_guard detects a failure.
void standard_error_write(const char *bytes, size_t count);

#endif
