package wasmbin_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

// TestUsage reads modules with exactly the limits that they use, and with one less of
// each.
func TestUsage(t *testing.T) {
	for _, name := range []string{"echo", "tally", "foreman"} {
		wasm, err := os.ReadFile(filepath.Join("../../plugins", name, name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		usage := usageOf(t, wasm)
		if _, err := valid(wasm, usage); err != nil {
			t.Errorf("%s: refused with the limits that it uses: %v", name, err)
		}
		fields, seen := reflect.TypeOf(usage), 0
		for i := range fields.NumField() {
			less, field := usage, fields.Field(i).Name
			used := reflect.ValueOf(usage).Field(i).Int()
			if used < 2 {
				continue // 0 stands for the default
			}
			seen++
			reflect.ValueOf(&less).Elem().Field(i).SetInt(used - 1)
			_, err := valid(wasm, less)
			var e *abi.Error
			if !errors.As(err, &e) || e.Code != abi.TooLarge || e.IDs["limit"] != field {
				t.Errorf("%s uses %d of %s, but with one less the error is %v", name, used, field, err)
			}
		}
		if seen < 15 {
			t.Errorf("%s uses more than one of only %d limits", name, seen)
		}
	}
}

func usageOf(t *testing.T, wasm []byte) wasmbin.Limits {
	t.Helper()
	m, err := wasmbin.Read(wasm, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	infos, err := m.Validate(wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return m.Usage(infos)
}

func TestSections(t *testing.T) {
	wasm, err := os.ReadFile("../../plugins/tally/tally.wasm")
	if err != nil {
		t.Fatal(err)
	}
	all := wasmbin.Sections(wasm, 100)
	end := 8
	for _, s := range all {
		if s.Offset <= end {
			t.Errorf("the section %s begins at %d, but the one before it ends at %d", s.Name, s.Offset, end)
		}
		end = s.Offset + s.Bytes
		if id := wasmbin.SectionID(wasm[s.Offset-1-len(wasmbin.AppendU32(nil, uint32(s.Bytes)))]); id != s.ID {
			t.Errorf("the section %s has the id %d, but the byte is %d", s.Name, s.ID, id)
		}
	}
	if end != len(wasm) {
		t.Errorf("the last section ends at %d of %d", end, len(wasm))
	}
	if got := wasmbin.Sections(wasm[:len(wasm)-1], 100); len(got) != len(all)-1 {
		t.Errorf("%d sections of a cut module, want %d", len(got), len(all)-1)
	}
	if got := wasmbin.Sections(wasm, 2); len(got) != 2 {
		t.Errorf("%d sections, want at most 2", len(got))
	}
	if got := wasmbin.Sections([]byte("{}"), 2); got != nil {
		t.Errorf("sections of no module: %v", got)
	}
}
