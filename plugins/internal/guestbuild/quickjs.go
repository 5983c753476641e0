package guestbuild

import "path/filepath"

// quickJS builds plugins/js: QuickJS and what is around it, with the C library of
// WASI.
func quickJS() Guest {
	const dir = "plugins/js"
	return Guest{
		Name: "js", Dir: dir, Embedded: true, Tools: []string{"clang-14", "wasm-ld-14"},
		Inputs: []string{
			dir + "/*.[chs]", dir + "/*.js", dir + "/quickjs/*.[ch]", dir + "/manifest.json",
			"sdk/c/terrarium.h", "sdk/js/abi.js", "sdk/js/runtime.js",
		},
		commands: func(_ Guest, out string) (commands []command) {
			// Without inlining, the functions of the interpreter have smaller frames and scripts
			// can nest more deeply.
			compile := []string{"clang-14", "--target=wasm32-wasi", "--sysroot=/usr", "-std=gnu11", "-Os", "-fno-inline-functions",
				"-mbulk-memory", "-ffunction-sections", "-fdata-sections", "-D_GNU_SOURCE", "-DNDEBUG", "-Isdk/c", "-isystem", dir}
			// Nothing in a guest has a use for the warnings of sources that are kept as they are.
			own, theirs := []string{"-Wall", "-Wextra", "-Werror"}, []string{"-w"}
			// With -O, clang would run wasm-opt if it is installed.
			link := []string{"clang-14", "--target=wasm32-wasi", "--sysroot=/usr", "-nostartfiles", "-Wl,--no-entry", "-Wl,--gc-sections",
				"-Wl,--strip-all", "-Wl,--stack-first", "-Wl,-z,stack-size=1048576", "-o", out}
			for _, source := range []struct {
				path  string
				flags []string
			}{
				{"js.c", own}, {"host.c", own}, {"sources.s", own}, {"engine.c", theirs},
				{"quickjs/libregexp.c", theirs}, {"quickjs/libunicode.c", theirs}, {"quickjs/dtoa.c", theirs},
			} {
				object := out + "-" + filepath.Base(source.path) + ".o"
				args := append(append([]string{}, compile...), source.flags...)
				if filepath.Ext(source.path) == ".s" {
					args = []string{"clang-14", "--target=wasm32-wasi"}
				}
				commands = append(commands, command{args: append(args, "-c", dir+"/"+source.path, "-o", object)})
				link = append(link, object)
			}
			return append(commands, command{args: link})
		},
	}
}
