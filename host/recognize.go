package host

import (
	"bytes"
	"fmt"

	"github.com/seed47132306/terrarium/abi"
)

// preamble starts every core module: "\0asm", version 1.
var preamble = []byte("\x00asm\x01\x00\x00\x00")

const componentPreamble = "\x00asm\x0d\x00\x01\x00"

// lookalikes are files often passed by mistake instead of a module, by their
// first bytes after white space.
var lookalikes = []struct{ prefix, what, remedy string }{
	{"(module", "WebAssembly text, not a binary module", "translate it with wat2wasm"},
	{"(component", "a component in text form, not a module", "build a core module"},
	{";;", "WebAssembly text, not a binary module", "translate it with wat2wasm"},
	{"\x7fELF", "a native program for Linux, not a module", "build it for the target wasm32"},
	{"\xcf\xfa\xed\xfe", "a native program for macOS, not a module", "build it for the target wasm32"},
	{"MZ", "a native program for Windows, not a module", "build it for the target wasm32"},
	{"!<arch>", "an archive of object files, not a module", "link it with wasm-ld"},
	{"BC\xc0\xde", "LLVM bitcode, not a module", "link it without -flto, or with wasm-ld"},
	{"\x1f\x8b", "compressed with gzip", "decompress it first"},
	{"PK\x03\x04", "a zip archive", "unpack it first"},
	{"<", "HTML or XML, not a module", "it may be the error page of a download: fetch it again"},
	{"{", "JSON, not a module", "use the .wasm file"},
	{"[", "JSON, not a module", "use the .wasm file"},
	{"version https://git-lfs", "a pointer of Git LFS, not the file itself", "run git lfs pull"},
	{"#!", "a script, not a module", "use the .wasm file that it builds"},
}

// recognize refuses data that is not a core module, and says what it seems to
// be.
func recognize(op string, wasm []byte) error {
	if bytes.HasPrefix(wasm, preamble) {
		return nil
	}
	message, remedy := guess(wasm)
	return &abi.Error{Code: abi.InvalidArgument, Op: op, Message: message, Remedy: remedy}
}

func guess(wasm []byte) (message, remedy string) {
	switch {
	case len(wasm) == 0:
		return "the file is empty", "build the module again; the build may have been interrupted"
	case bytes.HasPrefix(wasm, []byte(componentPreamble)):
		return "it is a component, but a creature is a core module",
			"build for wasm32-wasip1 or wasm32-unknown-unknown instead of wasm32-wasip2, and do not run wasm-tools component new"
	case bytes.HasPrefix(preamble, wasm):
		return fmt.Sprintf("the module is truncated after %d bytes", len(wasm)), "build or copy it again"
	case bytes.HasPrefix(wasm, preamble[:4]) && len(wasm) >= len(preamble):
		return fmt.Sprintf("it is WebAssembly of the unknown version % x", wasm[4:8]), "build a core module of version 1"
	}
	start := bytes.TrimLeft(bytes.TrimPrefix(wasm[:min(len(wasm), 512)], []byte("\xef\xbb\xbf")), " \t\r\n")
	for _, l := range lookalikes {
		if bytes.HasPrefix(start, []byte(l.prefix)) {
			return "it is " + l.what, l.remedy
		}
	}
	return fmt.Sprintf("it is not a WebAssembly module: it starts with % x", wasm[:min(len(wasm), 8)]),
		"use a .wasm file"
}
