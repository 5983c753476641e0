package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// slowModule is a module that takes seconds to compile: it has many functions with many loads,
// and they are never called.
func slowModule(functions int) []byte {
	section := func(id byte, content ...byte) []byte {
		return slices.Concat([]byte{id}, binary.AppendUvarint(nil, uint64(len(content))), content)
	}
	counted := func(n int, each []byte) []byte {
		return append(binary.AppendUvarint(nil, uint64(n)), bytes.Repeat(each, n)...)
	}
	body := slices.Concat([]byte{0, 0x41, 0}, bytes.Repeat([]byte{0x28, 2, 0}, 30_000), []byte{0x1a, 0x0b}) // i32.const 0, i32.load …, drop
	slow := append(binary.AppendUvarint(nil, uint64(len(body))), body...)
	name := func(text string, kind, index byte) []byte {
		return slices.Concat([]byte{byte(len(text))}, []byte(text), []byte{kind, index})
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 2, 0x60, 0, 0, 0x60, 2, 0x7f, 0x7f, 1, 0x7f),
		section(3, append([]byte{byte(2 + functions), 0, 1}, make([]byte, functions)...)...),
		section(5, 1, 1, 1, 1),
		section(7, slices.Concat([]byte{3}, name("memory", 2, 0), name("terrarium_abi_v1", 0, 0), name("creature_handle", 0, 1))...),
		section(10, slices.Concat([]byte{byte(2 + functions)}, []byte{2, 0, 0x0b}, []byte{4, 0, 0x41, 0, 0x0b}, counted(functions, slow)[1:])...),
	)
}

// TestInterruptWhileCompiling interrupts a run whose module is being compiled. It ends like
// any other interrupted run, and nothing of the compiler remains.
func TestInterruptWhileCompiling(t *testing.T) {
	dir, tmp := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "slow.wasm"), slowModule(40), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "slow.hcl", "terrarium { name = \"slow\" }\ncreature \"slow\" {\n  module = \"./slow.wasm\"\n}\n")
	p := startWith(t, dir, tmp, "run", "slow.hcl")
	for started := time.Now(); len(compilers(t, tmp)) == 0; runtime.Gosched() { // the process that compiles gets one before it is started
		if time.Since(started) > deadline {
			t.Fatalf("it compiles nothing\n%s", p.stderr)
		}
	}
	if code := p.signal(os.Interrupt); code != exitInterrupted(syscall.SIGINT) {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// compilers are the directories in which processes compile now.
func compilers(t *testing.T, tmp string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(tmp, "terrarium-code-*", "work-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
