package wasmbin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// everyOpcode lists the instructions of Wasm 2.0.
func everyOpcode(t *testing.T) []Opcode {
	var all []Opcode
	for op := Opcode(0); op < 0xffff; op++ {
		if op.Valid() {
			all = append(all, op)
		}
	}
	// Version 1, sign extension, references; behind the prefixes; vectors.
	if want := 172 + 5 + 6 + 18 + 236; len(all) != want {
		t.Fatalf("there are %d instructions", len(all))
	}
	return all
}

// constants put a value of a type on the stack.
var constants = map[byte]string{'i': "\x41\x00", 'I': "\x42\x00", 'f': "\x43\x00\x00\x00\x00",
	'F': "\x44\x00\x00\x00\x00\x00\x00\x00\x00", 'V': "\xfd\x0c" + strings.Repeat("\x00", 16)}

// immediatesOf returns small immediates of a kind.
var immediatesOf = map[Imm]string{ImmMemArg: "\x00\x00", ImmMemArgLane: "\x00\x00\x00", ImmLane: "\x00",
	ImmShuffle: strings.Repeat("\x00", 16), ImmV128: strings.Repeat("\x00", 16), ImmI32: "\x00", ImmI64: "\x00",
	ImmF32: "\x00\x00\x00\x00", ImmF64: "\x00\x00\x00\x00\x00\x00\x00\x00", ImmMemory: "\x00", ImmMemoryMemory: "\x00\x00",
	ImmData: "\x00", ImmDataMemory: "\x00\x00", ImmElem: "\x00", ImmElemTable: "\x00\x00", ImmTable: "\x00", ImmTableTable: "\x00\x00"}

// using returns a module whose only function applies an instruction to
// operands of these types and has this result, "" for none.
func using(op Opcode, operands, result string) []byte {
	var body []byte
	for i := range len(operands) {
		body = append(body, constants[operands[i]]...)
	}
	body = append(op.Append(body), immediatesOf[op.Imm()]...)
	m := &Module{
		Types: []FuncType{{}}, Funcs: []uint32{0}, Memories: []Memory{{}}, Tables: []Table{{Type: FuncRef}},
		Elements: []Element{{Mode: Passive, Type: FuncRef}}, Data: []Data{{Mode: Passive}}, DataCount: new(uint32),
		Code: []Code{{Body: append(body, byte(OpEnd))}},
	}
	if result != "" {
		m.Types[0].Results = []ValueType{letterTypes[result[0]]}
	}
	return m.Write()
}

func accepted(wasm []byte) error {
	m, err := Read(wasm, Limits{})
	if err == nil {
		_, err = m.Validate(Limits{})
	}
	return err
}

// TestInstructionTypes compares the table with wazero for every instruction:
// with the right operands, with each operand wrong, and with another result.
func TestInstructionTypes(t *testing.T) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	defer rt.Close(ctx)
	check := func(op Opcode, operands, result string, want bool) {
		wasm := using(op, operands, result)
		if err := accepted(wasm); (err == nil) != want {
			t.Errorf("%s of %q to %q: %v", op, operands, result, err)
		}
		c, err := rt.CompileModule(ctx, wasm)
		if (err == nil) != want {
			t.Errorf("%s of %q to %q: wazero says %v", op, operands, result, err)
		}
		if err == nil {
			c.Close(ctx)
		}
	}
	for _, op := range everyOpcode(t) {
		info := op.info()
		if info.special {
			continue
		}
		check(op, info.pops, info.pushes, true)
		for i := range len(info.pops) {
			for _, letter := range "iIfFV" {
				if other := info.pops[:i] + string(letter) + info.pops[i+1:]; other != info.pops {
					check(op, other, info.pushes, false)
				}
			}
		}
		if info.pops != "" {
			check(op, info.pops[1:], info.pushes, false)
		}
		for _, other := range []string{"", "i", "I", "f", "F", "V"} {
			if other != info.pushes {
				check(op, info.pops, other, false)
			}
		}
	}
}

// TestAlignments compares the largest alignment of every access with wazero.
func TestAlignments(t *testing.T) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	defer rt.Close(ctx)
	seen := 0
	for _, op := range everyOpcode(t) {
		info := op.info()
		if info.imm != ImmMemArg && info.imm != ImmMemArgLane {
			continue
		}
		seen++
		for align := range byte(7) {
			wasm := using(op, info.pops, info.pushes)
			at := bytes.Index(wasm, append(op.Append(nil), 0, 0))
			wasm[at+len(op.Append(nil))] = align
			err := accepted(wasm)
			if (err == nil) != (align <= info.align) {
				t.Errorf("%s with alignment %d: %v", op, align, err)
			}
			c, theirs := rt.CompileModule(ctx, wasm)
			if (theirs == nil) != (err == nil) {
				t.Errorf("%s with alignment %d: %v, wazero says %v", op, align, err, theirs)
			}
			if theirs == nil {
				c.Close(ctx)
			}
		}
	}
	if seen != 23+22 {
		t.Errorf("%d instructions access the memory", seen)
	}
}

// TestLanes compares how many lanes every instruction has with wazero.
func TestLanes(t *testing.T) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	defer rt.Close(ctx)
	for _, op := range everyOpcode(t) {
		info := op.info()
		if info.lanes == 0 {
			continue
		}
		for _, lane := range []byte{1, 2, 3, 4, 7, 8, 15, 16, 31} {
			wasm := using(op, info.pops, info.pushes)
			immediates := immediatesOf[op.Imm()]
			at := bytes.Index(wasm, append(op.Append(nil), immediates...)) + len(op.Append(nil)) + len(immediates) - 1
			wasm[at] = lane
			err := accepted(wasm)
			c, theirs := rt.CompileModule(ctx, wasm)
			if (theirs == nil) != (err == nil) || (err == nil) != (lane < info.lanes) {
				t.Errorf("%s of lane %d: %v, wazero says %v", op, lane, err, theirs)
			}
			if theirs == nil {
				c.Close(ctx)
			}
		}
	}
}

// TestNames assembles every instruction by its name if wat2wasm is installed.
func TestNames(t *testing.T) {
	wat2wasm, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed")
	}
	texts := map[Imm]string{ImmMemArgLane: " 0", ImmLane: " 0", ImmShuffle: strings.Repeat(" 0", 16), ImmV128: " i64x2 0 0",
		ImmI32: " 0", ImmI64: " 0", ImmF32: " 0", ImmF64: " 0", ImmData: " 0", ImmDataMemory: " 0", ImmElem: " 0",
		ImmElemTable: " 0", ImmTable: " 0", ImmTableTable: " 0 0", ImmFunc: " 0", ImmLocal: " 0", ImmGlobal: " 0",
		ImmLabel: " 0", ImmLabels: " 0", ImmTypes: " (result i32)", ImmRefType: " func", ImmTypeTable: " (type 0)"}
	var wat strings.Builder
	wat.WriteString("(module (type (func)) (memory 1) (table 1 funcref) (global (mut i32) (i32.const 0)) (elem func) (data \"\") (func (local i32)\n")
	var want []Opcode
	for _, op := range everyOpcode(t) {
		switch op {
		case OpElse, OpEnd:
			continue
		case OpBlock, OpLoop, OpIf:
			fmt.Fprintf(&wat, "%s end\n", op)
			want = append(want, op, OpEnd)
			continue
		}
		align := ""
		if imm := op.Imm(); imm == ImmMemArg || imm == ImmMemArgLane {
			align = " align=1"
		}
		fmt.Fprintf(&wat, "%s%s%s\n", op, align, texts[op.Imm()])
		want = append(want, op)
	}
	wat.WriteString("))")
	dir := t.TempDir()
	source, target := filepath.Join(dir, "a.wat"), filepath.Join(dir, "a.wasm")
	if err := os.WriteFile(source, []byte(wat.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(wat2wasm, "--no-check", source, "-o", target).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wasm, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(wasm, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	it := NewInstrs(m.Code[0].Body)
	for i := 0; it.Next() && i < len(want); i++ {
		if it.Op != want[i] {
			t.Fatalf("%s is assembled as %s", want[i], it.Op)
		}
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
}
