package lines

import (
	"debug/dwarf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed47132306/terrarium/host/wasmbin"
)

// modules are versions 4 and 5 of DWARF for the same source.
var modules = []string{"fault", "fault5"}

func read(t testing.TB, name string) *wasmbin.Module {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("..", "..", "testdata", "lines", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasmbin.Read(wasm, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// position is a row with the path of its file.
type position struct {
	Address       uint64
	File          string
	Line, Column  int
	EndOfSequence bool
}

// TestRows compares the rows of line tables with those that debug/dwarf reads.
func TestRows(t *testing.T) {
	for _, name := range modules {
		s := Of(read(t, name))
		d, err := s.data()
		if err != nil {
			t.Fatal(err)
		}
		unit, err := d.Reader().Next()
		if err != nil {
			t.Fatal(err)
		}
		dir, _ := unit.Val(dwarf.AttrCompDir).(string)
		table, ok := s.tableAt(uint64(unit.Val(dwarf.AttrStmtList).(int64)), dir)
		if !ok {
			t.Fatalf("%s: the table is not read", name)
		}
		l := &limit{end: time.Now().Add(time.Minute)}
		var got, want []position
		table.rows(l, func(r row) bool {
			got = append(got, position{Address: r.addr, File: table.file(l, r.file), Line: int(r.line), Column: int(r.column), EndOfSequence: r.end})
			return true
		})
		theirs, err := d.LineReader(unit)
		if err != nil {
			t.Fatal(err)
		}
		for {
			var e dwarf.LineEntry
			if err := theirs.Next(&e); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			want = append(want, position{Address: e.Address, File: e.File.Name, Line: e.Line, Column: e.Column, EndOfSequence: e.EndSequence})
		}
		if d := cmp.Diff(want, got); d != "" || len(got) < 20 {
			t.Errorf("%s: %d rows; debug/dwarf (-) and own (+) differ:\n%s", name, len(got), d)
		}
	}
}

// TestFind looks for all code of a module at once.
func TestFind(t *testing.T) {
	for _, name := range modules {
		m := read(t, name)
		var places []Place
		for i := range m.Code {
			it := wasmbin.NewInstrs(m.Code[i].Body)
			for it.Next() {
				places = append(places, Place{Offset: uint64(m.Code[i].Offset - m.CodeOffset + it.Start)})
			}
		}
		frames, err := Of(m).Find(places, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for i, f := range frames {
			for _, f := range f {
				if f.File != "fault.c" || f.Line < 10 || f.Line > 50 || f.Foreign != (f.Function == "terrarium_abi_v1") {
					t.Errorf("%s: the code at %d is at %+v", name, places[i].Offset, f)
				}
				seen[f.Function] = true
			}
		}
		for _, want := range []string{"divide", "twice", "sink", "spin", "reach", "call", "creature_handle"} {
			if !seen[want] {
				t.Errorf("%s: no code is in %s", name, want)
			}
		}
	}
}

func TestForeign(t *testing.T) {
	for _, c := range []struct {
		function, file string
		foreign        bool
	}{
		{"picky::handle", "/src/picky/src/lib.rs", false},
		{"<picky::Config as core::fmt::Debug>::fmt", "/src/picky/src/lib.rs", false},
		{"core::panicking::panic_fmt", "/rustc/59807616e/library/core/src/panicking.rs", true},
		{"unwrap<alloc::string::String>", "/rustc/59807616e/library/core/src/option.rs", true},
		{"terrarium::guest::handle", "/src/terrarium/sdk/rust/src/guest.rs", true},
		{"parse", "/src/.cargo/registry/src/index/json-1.0.0/src/lib.rs", true},
		{"tr_join_all", "/src/kit/creature.h", true},
		{"tree_walk", "/src/words/tree.c", false},
		{"terrarium::Turn::text", "/opt/kit/terrarium.hpp", true},
		{"terrariums", "/src/terrariums.cpp", false},
		{"debug.panicExtra", "/opt/zig/lib/std/debug.zig", true},
		{"abortable", "/src/a.c", false},
		{"abort", "", true},
	} {
		if got := foreign(c.function, c.file); got != c.foreign {
			t.Errorf("foreign(%q, %q) = %v", c.function, c.file, got)
		}
	}
}

func TestNamesAndPaths(t *testing.T) {
	for in, want := range map[string]string{
		"_ZN5picky6handle17h0123456789abcdefE": "picky::handle", "_RNvCs1234_7mycrate3foo": "mycrate::foo",
		"_ZN9terrarium4Turn4textEv": "terrarium::Turn::text", "creature_handle": "creature_handle", "_Z": "_Z",
	} {
		if got := Demangled(in); got != want {
			t.Errorf("Demangled(%q) = %q, want %q", in, got, want)
		}
	}
	long := "/src/" + string(make([]byte, 200)) + "/deep/file.c"
	for _, c := range []struct{ file, dir, want string }{
		{"/src/a/b.c", "/src", "a/b.c"}, {"/src/a/b.c", "/src/", "a/b.c"}, {"/srcs/b.c", "/src", "/srcs/b.c"}, {"b.c", "", "b.c"},
		{"/src/words/src/a.zig", "/src/kit/src", "words/src/a.zig"}, {"/src", "/src", "/src"}, {"", "/src", ""}, {long, "/", "…/deep/file.c"},
	} {
		if got := shorten(c.file, c.dir); got != c.want {
			t.Errorf("shorten(%q, %q) = %q, want %q", c.file, c.dir, got, c.want)
		}
	}
}
