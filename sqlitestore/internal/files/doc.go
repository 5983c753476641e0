// Package files is the only way in which sqlitestore touches the files of a session
// directory. A directory may come from an untrusted source, so no name in it is trusted:
//
//   - A file is reached through an [os.Root] of its session directory, as NAME or
//     as stores/NAME. A [Name] has one element, and only [NameOf] makes one.
//   - Only regular files are opened, renamed and removed. Symbolic links, named
//     pipes, devices, sockets and directories in their places are refused, and left
//     as they are. stores itself has to be a directory.
//   - A file that is written to must have only one name: a hard link may be a file
//     elsewhere.
//
// SQLite opens files by path. [CheckDatabase] checks a database, its write-ahead log and
// its shared memory before that. A process that may write to the directory can exchange a
// file between the check and the opening; nothing is promised for a directory that an
// untrusted process writes to while it is in use.
//
// The functions may be called by any goroutine. They return errors of the code storage for
// what they refuse, and those of [os] for the rest.
package files
