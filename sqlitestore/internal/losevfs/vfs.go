//go:build cgo && !purego

package losevfs

/*
#cgo linux LDFLAGS: -Wl,--unresolved-symbols=ignore-in-object-files
#cgo darwin LDFLAGS: -Wl,-undefined,dynamic_lookup
#include "vfs.h"
*/
import "C"

import (
	"unsafe"

	_ "github.com/mattn/go-sqlite3" // the library that the layer is for
)

func init() {
	if rc := C.losevfs_register(); rc != 0 {
		panic("losevfs: SQLite refuses the file layer") // nothing can be tested then
	}
}

//export loseOpen
func loseOpen(name *C.char, flags C.int) C.longlong {
	return C.longlong(opened(C.GoString(name), int(flags)))
}

//export loseClose
func loseClose(id C.longlong) { closed(int64(id)) }

//export loseWrite
func loseWrite(id C.longlong, from unsafe.Pointer, n C.int, at C.longlong) C.int {
	return C.int(lookup(int64(id)).write(op{at: int64(at), data: C.GoBytes(from, n)}))
}

//export loseTruncate
func loseTruncate(id, size C.longlong) C.int {
	return C.int(lookup(int64(id)).write(op{at: int64(size), truncate: true}))
}

//export loseSync
func loseSync(id C.longlong) C.int { return C.int(lookup(int64(id)).sync()) }

//export loseRemove
func loseRemove(name *C.char, syncDirectory C.int) C.int {
	return C.int(removed(C.GoString(name), syncDirectory != 0))
}
