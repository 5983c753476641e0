package wasmbin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/host/wasmbin"
)

// goModule is a Go program with much of the standard library.
func goModule(b *testing.B) []byte {
	b.Helper()
	target := filepath.Join(b.TempDir(), "vet.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-o", target, "cmd/vet")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	wasm, err := os.ReadFile(target)
	if err != nil {
		b.Fatal(err)
	}
	return wasm
}

func BenchmarkReadAndValidate(b *testing.B) {
	wasm := goModule(b)
	b.SetBytes(int64(len(wasm)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := valid(wasm, wasmbin.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	wasm := goModule(b)
	b.SetBytes(int64(len(wasm)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wasmbin.Read(wasm, wasmbin.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	m, err := wasmbin.Read(goModule(b), wasmbin.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(m.Write())))
	for b.Loop() {
		m.Write()
	}
}

// BenchmarkInstrs measures the decoder alone, per byte of code.
func BenchmarkInstrs(b *testing.B) {
	m, err := wasmbin.Read(goModule(b), wasmbin.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	size := 0
	for i := range m.Code {
		size += len(m.Code[i].Body)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		for i := range m.Code {
			it := wasmbin.NewInstrs(m.Code[i].Body)
			for it.Next() {
			}
			if err := it.Err(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
