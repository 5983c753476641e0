package lines

import (
	"path"
	"regexp"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxName is the length of the longest name that is demangled, in bytes.
const maxName = 1 << 10

// Demangled returns a name of C++ or Rust as its author wrote it, without
// parameters, and any other name as it is.
func Demangled(name string) (out string) {
	if len(name) > maxName {
		return name[:maxName]
	}
	defer func() {
		if recover() != nil { // a defect of the library
			out = name
		}
	}()
	const most = 11 // log2 of the size of the result
	return demangle.Filter(name, demangle.NoParams, demangle.NoTemplateParams, demangle.NoEnclosingParams, demangle.MaxLength(most))
}

// foreignNames matches the functions of kits, of the libraries of languages, and
// those that compilers add.
var foreignNames = regexp.MustCompile(`^<?(&?(mut )?)(core|std|alloc|terrarium|__rustc|rustc_std_workspace_\w+|compiler_builtins|compiler_rt|hashbrown|dlmalloc)(::|\.)` +
	`|^(rust_panic|rust_begin_unwind|__rust_|__rdl_|__rg_|__wasm_|dlmalloc|tr_|terrarium_|memcpy$|memmove$|memset$|memcmp$|abort$|malloc$|free$|std::)`)

// foreignFiles matches the files of the libraries of languages, of packages of
// other authors, and of kits.
var foreignFiles = regexp.MustCompile(`^/rustc/|/\.cargo/(registry|git)/|/rustlib/src/|^library/(core|std|alloc)/|/lib/(std|compiler_rt|zig)/|/zig/p/|^/usr/(include|lib|share|local/include)/|/wasi-libc/|/terrarium\.hpp$` +
	`|/sdk/(c|cpp|rust/src|zig/src)/[\w.]+$`)

func foreign(function, file string) bool {
	return foreignNames.MatchString(function) || foreignFiles.MatchString(file)
}

// maxPath is the longest path that is shown, in bytes.
const maxPath = 96

// shorten returns a path without the folders that it has in common with a
// directory: those above the author's project. A path that is still long is cut
// at its start.
func shorten(file, dir string) string {
	common := 0
	above := path.Clean(dir) + "/"
	for i := 0; i < min(len(file), len(above)) && file[i] == above[i]; i++ {
		if file[i] == '/' {
			common = i + 1
		}
	}
	if common > len("/") {
		file = file[common:]
	}
	if len(file) <= maxPath {
		return file
	}
	file = file[len(file)-maxPath:]
	if at := strings.IndexByte(file, '/'); at >= 0 {
		file = file[at:]
	}
	return "…" + file
}
