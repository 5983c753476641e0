//go:build cgo && !purego

#include "vfs.h"
#include "_cgo_export.h"

static sqlite3_vfs *below; // the layer that really keeps files
static sqlite3_vfs layer;

// file is what SQLite holds; the real one lies behind it.
typedef struct {
	sqlite3_file base;
	sqlite3_int64 id; // of loseOpen; 0 for a file that is not ours
} file;

static file *own(sqlite3_file *f) { return (file *)f; }
static sqlite3_file *real(sqlite3_file *f) { return (sqlite3_file *)(own(f) + 1); }

static int f_close(sqlite3_file *f) {
	if (own(f)->id) loseClose(own(f)->id);
	return real(f)->methods->close(real(f));
}

static int f_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at) { return real(f)->methods->read(real(f), to, n, at); }

static int f_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at) {
	int rc = own(f)->id ? loseWrite(own(f)->id, (void *)from, n, at) : 0;
	return rc ? rc : real(f)->methods->write(real(f), from, n, at);
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 size) {
	int rc = own(f)->id ? loseTruncate(own(f)->id, size) : 0;
	return rc ? rc : real(f)->methods->truncate(real(f), size);
}

// A real sync would only cost time: whether the power fails is up to the test.
static int f_sync(sqlite3_file *f, int flags) {
	return own(f)->id ? loseSync(own(f)->id) : real(f)->methods->sync(real(f), flags);
}

static int f_size(sqlite3_file *f, sqlite3_int64 *n) { return real(f)->methods->size(real(f), n); }
static int f_lock(sqlite3_file *f, int how) { return real(f)->methods->lock(real(f), how); }
static int f_unlock(sqlite3_file *f, int how) { return real(f)->methods->unlock(real(f), how); }
static int f_reserved(sqlite3_file *f, int *out) { return real(f)->methods->reserved(real(f), out); }
static int f_control(sqlite3_file *f, int op, void *arg) { return real(f)->methods->control(real(f), op, arg); }
static int f_sector(sqlite3_file *f) { return real(f)->methods->sector(real(f)); }
static int f_device(sqlite3_file *f) { return real(f)->methods->device(real(f)); }
static int f_shm_lock(sqlite3_file *f, int offset, int n, int flags) { return real(f)->methods->shm_lock(real(f), offset, n, flags); }
static void f_shm_barrier(sqlite3_file *f) { real(f)->methods->shm_barrier(real(f)); }
static int f_shm_unmap(sqlite3_file *f, int remove) { return real(f)->methods->shm_unmap(real(f), remove); }
static int f_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **out) {
	return real(f)->methods->shm_map(real(f), region, size, extend, out);
}

// Version 2 leaves out memory-mapped access, whose writes this layer would not see.
static const sqlite3_io_methods methods = {
	2, f_close, f_read, f_write, f_truncate, f_sync, f_size, f_lock, f_unlock, f_reserved, f_control, f_sector, f_device,
	f_shm_map, f_shm_lock, f_shm_barrier, f_shm_unmap,
};

static int v_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out) {
	f->methods = 0; // SQLite must not close what was not opened
	sqlite3_int64 id = name ? loseOpen((char *)name, flags) : 0;
	if (id < 0) return (int)-id;
	own(f)->id = id;
	int rc = below->open(below, name, real(f), flags, out);
	if (rc == 0) f->methods = &methods;
	else if (id) loseClose(id);
	return rc;
}

static int v_remove(sqlite3_vfs *v, const char *name, int sync_directory) {
	int rc = loseRemove((char *)name, sync_directory);
	return rc ? rc : below->remove(below, name, sync_directory);
}

int losevfs_register(void) {
	below = sqlite3_vfs_find(0);
	if (!below) return 1;
	layer = *below;
	layer.name = "lose";
	layer.file_size = below->file_size + (int)sizeof(file);
	layer.open = v_open;
	layer.remove = v_remove;
	return sqlite3_vfs_register(&layer, 1);
}
