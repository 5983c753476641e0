//go:build !cgo || purego

package losevfs

import (
	"sync"
	"unsafe"

	"modernc.org/libc"
	c "modernc.org/sqlite/lib"
)

// layer is the file layer in front of SQLite's own, which differs from it in two
// functions. The files that it opens get a table of functions in which four are replaced.
var layer struct {
	open, remove uintptr // the replaced ones

	sync.Mutex
	methods map[uintptr]uintptr       // the table for each table that was replaced
	files   map[uintptr]*underlyingOf // by SQLite's address of the file
}

// underlyingOf is an open file.
type underlyingOf struct {
	id      int64 // of opened; 0 for a file that is not ours
	methods *c.Tsqlite3_io_methods
}

func init() {
	tls := libc.NewTLS()
	defer tls.Close()
	below := c.Xsqlite3_vfs_find(tls, 0)
	if below == 0 {
		panic("losevfs: SQLite has no file layer") // nothing can be tested then
	}
	layer.methods, layer.files = map[uintptr]uintptr{}, map[uintptr]*underlyingOf{}
	own := (*c.Tsqlite3_vfs)(at(kept(tls, *(*c.Tsqlite3_vfs)(at(below)))))
	layer.open, layer.remove = own.FxOpen, own.FxDelete
	own.FxOpen, own.FxDelete = function(openFile), function(removeFile)
	own.FzName = kept(tls, [5]byte{'l', 'o', 's', 'e'})
	if c.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(own)), 1) != c.SQLITE_OK {
		panic("losevfs: SQLite refuses the file layer")
	}
}

// kept returns the address of a copy in SQLite's memory, which is never released.
func kept[T any](tls *libc.TLS, v T) uintptr {
	p := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(v)))
	*(*T)(at(p)) = v
	return p
}

// at converts an address in SQLite's memory, which Go's collector does not move or free.
func at(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// function returns the address by which translated C calls a function of Go.
func function[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// called is the opposite of function.
func called[F any](address uintptr) F {
	return *(*F)(unsafe.Pointer(&address))
}

type opener = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32

func openFile(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	*(*uintptr)(at(file)) = 0 // SQLite must not close what was not opened
	var id int64
	if name != 0 {
		if id = opened(libc.GoString(name), int(flags)); id < 0 {
			return int32(-id)
		}
	}
	if code := called[opener](layer.open)(tls, vfs, name, file, flags, out); code != c.SQLITE_OK {
		if id != 0 {
			closed(id)
		}
		return code
	}
	held := (*c.Tsqlite3_file)(at(file))
	layer.Lock()
	defer layer.Unlock()
	layer.files[file] = &underlyingOf{id, (*c.Tsqlite3_io_methods)(at(held.FpMethods))}
	table, made := layer.methods[held.FpMethods]
	if !made {
		own := *(*c.Tsqlite3_io_methods)(at(held.FpMethods))
		own.FiVersion = min(own.FiVersion, 2) // leaves out memory-mapped access, whose writes this layer would not see
		own.FxClose, own.FxWrite, own.FxTruncate, own.FxSync = function(shutFile), function(writeFile), function(truncateFile), function(flushFile)
		table = kept(tls, own)
		layer.methods[held.FpMethods] = table
	}
	held.FpMethods = table
	return c.SQLITE_OK
}

func underlying(file uintptr) *underlyingOf {
	layer.Lock()
	defer layer.Unlock()
	return layer.files[file]
}

func shutFile(tls *libc.TLS, file uintptr) int32 {
	f := underlying(file)
	layer.Lock()
	delete(layer.files, file)
	layer.Unlock()
	if f.id != 0 {
		closed(f.id)
	}
	return called[func(*libc.TLS, uintptr) int32](f.methods.FxClose)(tls, file)
}

func writeFile(tls *libc.TLS, file, from uintptr, n int32, place int64) int32 {
	f := underlying(file)
	if f.id != 0 {
		data := append([]byte{}, unsafe.Slice((*byte)(at(from)), n)...)
		if code := lookup(f.id).write(op{at: place, data: data}); code != 0 {
			return int32(code)
		}
	}
	return called[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](f.methods.FxWrite)(tls, file, from, n, place)
}

func truncateFile(tls *libc.TLS, file uintptr, size int64) int32 {
	f := underlying(file)
	if f.id != 0 {
		if code := lookup(f.id).write(op{at: size, truncate: true}); code != 0 {
			return int32(code)
		}
	}
	return called[func(*libc.TLS, uintptr, int64) int32](f.methods.FxTruncate)(tls, file, size)
}

// flushFile syncs. A real sync would only cost time: whether the power fails is up to the test.
func flushFile(tls *libc.TLS, file uintptr, flags int32) int32 {
	f := underlying(file)
	if f.id == 0 {
		return called[func(*libc.TLS, uintptr, int32) int32](f.methods.FxSync)(tls, file, flags)
	}
	return int32(lookup(f.id).sync())
}

func removeFile(tls *libc.TLS, vfs, name uintptr, syncDirectory int32) int32 {
	if code := removed(libc.GoString(name), syncDirectory != 0); code != 0 {
		return int32(code)
	}
	return called[func(*libc.TLS, uintptr, uintptr, int32) int32](layer.remove)(tls, vfs, name, syncDirectory)
}
