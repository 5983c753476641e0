// Package sdk holds the sources of the kits for creatures, so that the command can write
// them into the folders of authors. The kits themselves are in the folders below it.
package sdk

import "embed"

// Files has the sources of every kit, by path below this folder, and the sources and
// tests of its reference creature shout. Other tests, examples and pages are left out.
//
//go:embed c/*.h c/examples/shout*.c
//go:embed cpp/*.hpp cpp/examples/shout*.cpp
//go:embed rust/Cargo.toml rust/src rust/examples/shout/src
//go:embed zig/build.zig zig/build.zig.zon zig/src zig/examples/shout.zig
//go:embed assemblyscript/package.json assemblyscript/*.ts assemblyscript/assembly assemblyscript/fake assemblyscript/examples/shout.ts
//go:embed js/package.json js/*.js js/*.ts js/examples/shout.js
//go:embed go/terrarium/*.go go/terrarium/terrariumtest/*.go go/examples/shout/*.go
var Files embed.FS
