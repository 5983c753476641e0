package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

const root = "../.."

func TestNothingGeneratedIsStale(t *testing.T) {
	if err := run(root, true); err != nil {
		t.Error(err)
	}
}

func TestCheckNamesWhatIsStale(t *testing.T) {
	dir := t.TempDir()
	readme, err := os.ReadFile(filepath.Join(root, "abi", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "abi"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "abi", "README.md"), readme, 0o644); err != nil {
		t.Fatal(err)
	}

	if err := os.CopyFS(filepath.Join(dir, "docs", "reference"), os.DirFS(filepath.Join(root, "docs", "reference"))); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err == nil || !strings.Contains(err.Error(), "sdk/c/terrarium.h is stale") {
		t.Errorf("a missing header: %v", err)
	}
	if err := run(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err != nil {
		t.Errorf("after writing: %v", err)
	}
}

func TestOutputIsDeterministic(t *testing.T) {
	first, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	second, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		if !bytes.Equal(first[i].content, second[i].content) {
			t.Errorf("%s differs between two runs", first[i].path)
		}
	}
}

// Every pointer must be followed by its length; otherwise the bindings would
// treat the wrong parameter as a pointer.
func TestPointersComeWithLengths(t *testing.T) {
	for _, f := range abi.Functions {
		for i, p := range f.Params {
			if p.Name != "ptr" && !strings.HasSuffix(p.Name, "_ptr") {
				continue
			}
			if p.Type != abi.I32 || i+1 == len(f.Params) {
				t.Fatalf("%s: the pointer %s has no length", f.Name, p.Name)
			}
			stem := strings.TrimSuffix(p.Name, "ptr")
			if next := f.Params[i+1].Name; next != stem+"len" && next != stem+"cap" {
				t.Errorf("%s: the pointer %s is followed by %s", f.Name, p.Name, next)
			}
		}
	}
}

func TestLimitTableCoversEveryLimit(t *testing.T) {
	limits := reflect.TypeFor[abi.Limits]()
	if limits.NumField() != len(abi.LimitTable) {
		t.Fatalf("%d limits, %d in the table", limits.NumField(), len(abi.LimitTable))
	}
	for i, l := range abi.LimitTable {
		name, _, _ := strings.Cut(limits.Field(i).Tag.Get("json"), ",")
		if name != l.Name {
			t.Errorf("limit %d is %s, in the table %s", i, name, l.Name)
		}
		if limitDefaults()[l.Name] == 0 {
			t.Errorf("%s has no default", l.Name)
		}
	}
}

func TestAmount(t *testing.T) {
	for _, c := range []struct {
		n          int64
		unit, want string
	}{
		{64 << 20, "bytes", "64 MiB"},
		{512, "bytes", "512 bytes"},
		{64 << 10, "bytes", "64 KiB"},
		{1_000_000, "calls", "1,000,000 calls"},
		{100, "calls", "100 calls"},
		{1e9, "time", "1s"},
	} {
		if got := amount(c.n, c.unit); got != c.want {
			t.Errorf("amount(%d, %s) = %q, want %q", c.n, c.unit, got, c.want)
		}
	}
}

func TestFillTablesWantsMarkers(t *testing.T) {
	if _, err := fillTables([]byte("# no markers\n")); err == nil || !strings.Contains(err.Error(), "functions") {
		t.Errorf("missing markers: %v", err)
	}
}

// TestToolSpecs proves that the reader of the schemas finds every tool with its
// arguments, those that are required first.
func TestToolSpecs(t *testing.T) {
	specs, err := toolSpecs(root)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range specs {
		line := s.Name
		for _, a := range s.Args {
			line += " " + a.Name + ":" + a.Type
			if !a.Required {
				line += "?"
			}
		}
		lines = append(lines, line)
	}
	want := []string{
		"send_channel channel:string payload:payload headers:object? reply_to:string?",
		"group_send creature:string payload:payload reply_to:string?",
		"group_status after:string? limit:integer?",
		"group_add_node species:string name:string? config:object? description:string? listen:wires? send:wires? two_way:boolean? task:payload?",
		"group_remove_node creature:string",
		"group_start_node creature:string",
		"group_stop_node creature:string",
		"group_pause_node creature:string",
		"group_resume_node creature:string",
		"group_channel action:string name:string? description:string? channel:string? creature:string? direction:string? alias:string? merge:boolean? on_collision:string?",
		"group_wire action:string from:string? to:string? with_content:boolean? prompt:string? when:string? allow_self:boolean? name:string? wire:string? after:string? limit:integer?",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
