// The part of SQLite's interface to file layers that is needed here. The header
// of the linked library cannot be included from another module.
#ifndef LOSEVFS_H
#define LOSEVFS_H

typedef long long sqlite3_int64;
typedef struct sqlite3_file sqlite3_file;
typedef struct sqlite3_io_methods sqlite3_io_methods;
typedef struct sqlite3_vfs sqlite3_vfs;

struct sqlite3_file {
	const sqlite3_io_methods *methods;
};

struct sqlite3_io_methods {
	int version;
	int (*close)(sqlite3_file *);
	int (*read)(sqlite3_file *, void *, int n, sqlite3_int64 at);
	int (*write)(sqlite3_file *, const void *, int n, sqlite3_int64 at);
	int (*truncate)(sqlite3_file *, sqlite3_int64 size);
	int (*sync)(sqlite3_file *, int flags);
	int (*size)(sqlite3_file *, sqlite3_int64 *);
	int (*lock)(sqlite3_file *, int);
	int (*unlock)(sqlite3_file *, int);
	int (*reserved)(sqlite3_file *, int *);
	int (*control)(sqlite3_file *, int op, void *);
	int (*sector)(sqlite3_file *);
	int (*device)(sqlite3_file *);
	// version 2
	int (*shm_map)(sqlite3_file *, int region, int size, int extend, void volatile **);
	int (*shm_lock)(sqlite3_file *, int offset, int n, int flags);
	void (*shm_barrier)(sqlite3_file *);
	int (*shm_unmap)(sqlite3_file *, int remove);
};

struct sqlite3_vfs {
	int version;
	int file_size;
	int max_path;
	sqlite3_vfs *next;
	const char *name;
	void *data;
	int (*open)(sqlite3_vfs *, const char *name, sqlite3_file *, int flags, int *out);
	int (*remove)(sqlite3_vfs *, const char *name, int sync_directory);
	int (*access)(sqlite3_vfs *, const char *name, int flags, int *out);
	int (*full_path)(sqlite3_vfs *, const char *name, int n, char *out);
	void *(*dl_open)(sqlite3_vfs *, const char *);
	void (*dl_error)(sqlite3_vfs *, int n, char *);
	void (*(*dl_symbol)(sqlite3_vfs *, void *, const char *))(void);
	void (*dl_close)(sqlite3_vfs *, void *);
	int (*randomness)(sqlite3_vfs *, int n, char *);
	int (*sleep)(sqlite3_vfs *, int microseconds);
	int (*time)(sqlite3_vfs *, double *);
	int (*last_error)(sqlite3_vfs *, int n, char *);
	// version 2
	int (*time64)(sqlite3_vfs *, sqlite3_int64 *);
	// version 3
	int (*set_call)(sqlite3_vfs *, const char *, void (*)(void));
	void (*(*get_call)(sqlite3_vfs *, const char *))(void);
	const char *(*next_call)(sqlite3_vfs *, const char *);
};

sqlite3_vfs *sqlite3_vfs_find(const char *);
int sqlite3_vfs_register(sqlite3_vfs *, int make_default);

int losevfs_register(void);

#endif
