package meter_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

var update = flag.Bool("update", false, "rewrite golden files and prebuilt modules")

func TestPrebuiltModulesAreCurrent(t *testing.T) {
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		t.Skip("wat2wasm is not installed (Debian: wabt)")
	}
	sources, err := filepath.Glob("testdata/*.wat")
	if err != nil || len(sources) == 0 {
		t.Fatal("there are no modules", err)
	}
	for _, source := range sources {
		prebuilt := strings.TrimSuffix(source, ".wat") + ".wasm"
		target := filepath.Join(t.TempDir(), "module.wasm")
		if *update {
			target = prebuilt
		}
		if out, err := exec.Command("wat2wasm", "--debug-names", "-o", target, source).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", source, err, out)
		}
		want, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(prebuilt); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go test ./host/wasmbin/meter -update", prebuilt, err)
		}
	}
}

// TestShapes shows the metered form of each kind of code.
func TestShapes(t *testing.T) {
	m, infos := decode(t, readModule(t, "shapes"))
	meta, err := meter.Instrument(m, infos)
	if err != nil {
		t.Fatal(err)
	}
	if !meta.Start || !meta.Tables {
		t.Errorf("the module has a start function and grows a table, and Meta says %+v", *meta)
	}
	decode(t, m.Write())
	got := disassemble(m)
	const golden = "testdata/shapes.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("the code (+) is not as in %s (-); -update rewrites it:\n%s", golden, d)
	}
}

// disassemble writes the exports and the code of a module as text, one line
// for each run of instructions between control instructions.
func disassemble(m *wasmbin.Module) string {
	var b strings.Builder
	for _, e := range m.Exports {
		fmt.Fprintf(&b, "export %s: %s %d\n", e.Name, e.Kind, e.Index)
	}
	names := map[uint32]string{}
	for _, n := range m.Names.Funcs {
		names[n.Index] = n.Name
	}
	first := uint32(m.ImportedFuncs())
	for i := range m.Code {
		index := first + uint32(i)
		fmt.Fprintf(&b, "\nfunction %d %s, locals %v\n", index, names[index], m.Code[i].Locals)
		disassembleBody(&b, m.Code[i].Body)
	}
	return b.String()
}

func disassembleBody(b *strings.Builder, body []byte) {
	depth := 1
	it := wasmbin.NewInstrs(body)
	var line []string
	flush := func() {
		if len(line) > 0 {
			fmt.Fprintf(b, "%s%s\n", strings.Repeat("  ", depth), strings.Join(line, "; "))
			line = nil
		}
	}
	for it.Next() {
		switch it.Op {
		case wasmbin.OpEnd, wasmbin.OpElse:
			flush()
			depth--
		}
		line = append(line, instruction(&it.Instr))
		switch it.Op {
		case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf, wasmbin.OpElse:
			flush()
			depth++
		case wasmbin.OpEnd, wasmbin.OpBr, wasmbin.OpBrIf, wasmbin.OpBrTable, wasmbin.OpReturn, wasmbin.OpUnreachable:
			flush()
		}
	}
	flush()
}

func instruction(in *wasmbin.Instr) string {
	s := in.Op.String()
	switch in.Op.Imm() {
	case wasmbin.ImmI32, wasmbin.ImmI64:
		return fmt.Sprint(s, " ", int64(in.Value))
	case wasmbin.ImmLocal, wasmbin.ImmLabel, wasmbin.ImmFunc, wasmbin.ImmGlobal, wasmbin.ImmTable, wasmbin.ImmData, wasmbin.ImmElem:
		return fmt.Sprint(s, " ", in.Index)
	case wasmbin.ImmTypeTable, wasmbin.ImmTableTable, wasmbin.ImmElemTable:
		return fmt.Sprint(s, " ", in.Index, " ", in.Index2)
	case wasmbin.ImmDataMemory:
		return fmt.Sprint(s, " ", in.Index)
	case wasmbin.ImmLabels:
		for label := range in.Labels() {
			s += fmt.Sprint(" ", label)
		}
	case wasmbin.ImmBlock:
		if index, ok := in.Block.Index(); ok {
			return fmt.Sprint(s, " (type ", index, ")")
		}
		if t, ok := in.Block.Result(); ok {
			return fmt.Sprint(s, " ", t)
		}
	}
	return s
}
