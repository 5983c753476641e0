package wasmbin_test

import (
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

var preamble = string((&wasmbin.Module{}).Write())

// section returns a section with that content.
func section(id byte, content string) string {
	return string(wasmbin.AppendU32([]byte{id}, uint32(len(content)))) + content
}

// Pieces of modules: one type, one function of it, its code.
var (
	oneType = section(1, "\x01\x60\x00\x00")
	oneFunc = section(3, "\x01\x00")
	oneCode = section(10, "\x01\x02\x00\x0b")
)

// withBody returns a module with one function of the given type and body.
func withBody(typ, body string) string {
	return preamble + section(1, "\x01"+typ) + oneFunc + section(4, "\x01\x70\x00\x00") + section(5, "\x01\x00\x00") +
		section(10, "\x01"+string(wasmbin.AppendU32(nil, uint32(len(body))))+body)
}

// malformedModules lists bytes that are not a module, with the error.
var malformedModules = []struct {
	name, wasm, wrong string
	lenient           bool // wazero accepts it
}{
	{name: "nothing", wasm: "", wrong: "not a Wasm module"},
	{name: "another magic", wasm: "\x00wasm\x01\x00\x00", wrong: "not a Wasm module"},
	{name: "half a preamble", wasm: preamble[:6], wrong: "not a Wasm module"},
	{name: "another version", wasm: "\x00asm\x02\x00\x00\x00", wrong: "not of version 1"},
	{name: "no such section", wasm: preamble + section(15, ""), wrong: "there is no section with the id 15"},
	{name: "half a section header", wasm: preamble + "\x01", wrong: "cut off"},
	{name: "section beyond the end", wasm: preamble + "\x01\x05\x00", wrong: `"type" says that it has 5 bytes, but only 1 are left`},
	{name: "section too long", wasm: preamble + section(1, "\x00\x00"), wrong: `"type" is longer than its content: 1 extra bytes`},
	{name: "section size too large", wasm: preamble + "\x01\xff\xff\xff\xff\x1f", wrong: "cut off or too large"},
	{name: "section twice", wasm: preamble + section(1, "\x00") + section(1, "\x00"), wrong: `"type" must not follow the section "type"`},
	{name: "sections in another order", wasm: preamble + section(3, "\x00") + section(1, "\x00"), wrong: `"type" must not follow the section "function"`},
	{name: "data count behind code", wasm: preamble + oneType + oneFunc + oneCode + section(12, "\x00"), wrong: `"data count" must not follow the section "code"`},
	{name: "elements behind data count", wasm: preamble + section(12, "\x00") + section(9, "\x00"), wrong: `"element" must not follow`},
	{name: "many types announced", wasm: preamble + section(1, "\xff\xff\xff\xff\x0f"), wrong: "the number of types is 4294967295, but only 0 bytes are left"},
	{name: "type cut off", wasm: preamble + section(1, "\x01\x60\x01\x7f"), wrong: "cut off"},
	{name: "no such form of type", wasm: preamble + section(1, "\x01\x40\x00\x00"), wrong: "a type has the unknown form 0x40"},
	{name: "no such value type", wasm: preamble + section(1, "\x01\x60\x01\x40\x00"), wrong: "a value has the unknown type 0x40"},
	{name: "no such import", wasm: preamble + section(2, "\x01\x01e\x01f\x09\x00"), wrong: "an import or export has the unknown kind 9"},
	{name: "import name beyond the end", wasm: preamble + section(2, "\x01\x09e\x01f\x00"), wrong: "9 bytes should follow"},
	{name: "name is not UTF-8", wasm: preamble + section(2, "\x01\x01\xff\x01f\x00\x00"), wrong: "not UTF-8"},
	{name: "surrogate in a name", wasm: preamble + section(2, "\x01\x03\xed\xa0\x80\x01f\x00\x00"), wrong: "not UTF-8"},
	{name: "table of numbers", wasm: preamble + section(4, "\x01\x7f\x00\x00"), wrong: "must be references, but have the type i32"},
	{name: "flags of a table", wasm: preamble + section(4, "\x01\x70\x10\x00"), wrong: "the size of a table or memory has unknown flags"},
	{name: "flags of a global", wasm: preamble + section(6, "\x01\x7f\x04\x41\x00\x0b"), wrong: "a global has an unknown mutability"},
	{name: "empty constant expression", wasm: preamble + section(6, "\x01\x7f\x00\x0b\x0b\x0b\x0b"), wrong: "a constant expression is empty"},
	{name: "constant expression with nop", wasm: preamble + section(6, "\x01\x7f\x00\x01\x41\x00\x0b"), wrong: "nop is not allowed in a constant expression"},
	{name: "constant expression without end", wasm: preamble + section(6, "\x01\x7f\x00\x41\x00"), wrong: "it ends too early"},
	{name: "constant cut off", wasm: preamble + section(6, "\x01\x7f\x00\x41\x80"), wrong: "cut off or too large"},
	{name: "constant too large", wasm: preamble + section(6, "\x01\x7f\x00\x41\xff\xff\xff\xff\x4f\x0b"), wrong: "cut off or too large"},
	{name: "export cut off", wasm: preamble + section(7, "\x01\x01x\x00"), wrong: "cut off"},
	{name: "start cut off", wasm: preamble + section(8, ""), wrong: "cut off"},
	{name: "flags of elements", wasm: preamble + section(9, "\x01\x08\x00\x00"), wrong: "flags 0x8"},
	{name: "kind of elements", wasm: preamble + section(9, "\x01\x01\x01\x00"), wrong: "elements of the unknown kind 0x1"},
	{name: "elements of numbers", wasm: preamble + section(9, "\x01\x05\x7f\x00"), wrong: "must be references, but have the type i32"},
	{name: "many elements announced", wasm: preamble + section(9, "\x01\x01\x00\xff\xff\xff\x7f"), wrong: "but only 0 bytes are left"},
	{name: "flags of data", wasm: preamble + section(11, "\x01\x03\x00"), wrong: "flags 0x3"},
	{name: "data beyond the end", wasm: preamble + section(11, "\x01\x01\x05x"), wrong: "5 bytes should follow, but only 1 are left"},
	{name: "data of another number", wasm: preamble + section(12, "\x01") + section(11, "\x00"), wrong: "the data count section says 1, but the number of data segments is 0"},
	{name: "data missing", wasm: preamble + section(12, "\x01"), wrong: "the data count section says 1, but the number of data segments is 0"},
	{name: "code without function", wasm: preamble + oneType + oneCode, wrong: "0 functions are declared, but 1 have code"},
	{name: "function without code", wasm: preamble + oneType + oneFunc, wrong: "1 functions are declared, but 0 have code"},
	{name: "body beyond the end", wasm: preamble + oneType + oneFunc + section(10, "\x01\x03\x00\x0b"), wrong: "the body of a function says that it has 3 bytes, but only 2 are left"},
	{name: "body without instructions", wasm: preamble + oneType + oneFunc + section(10, "\x01\x01\x00\x00"), wrong: "the body of a function is empty"},
	{name: "body without end", wasm: withBody("\x60\x00\x00", "\x00\x01"), wrong: "before its last end"},
	{name: "many groups of locals announced", wasm: withBody("\x60\x00\x00", "\xff\xff\x03\x0b"), wrong: "the number of groups of locals is"},
	{name: "locals of no type", wasm: withBody("\x60\x00\x00", "\x01\x01\x40\x0b"), wrong: "a value has the unknown type 0x40"},
	{name: "custom section without name", wasm: preamble + section(0, ""), wrong: "cut off"},
	{name: "empty custom section at the end", wasm: preamble + section(0, "\x01x"), wrong: "it ends with an empty custom section"},
	{name: "empty custom section elsewhere", wasm: preamble + section(0, "\x01x") + section(1, "\x00"), wrong: ""},
	{name: "two name sections", wasm: preamble + section(0, "\x04name") + section(0, "\x04name"), wrong: "two name sections"},
	{name: "part of the name section beyond the end", wasm: preamble + section(0, "\x04name\x01\x05\x00"), wrong: "the name section is damaged", lenient: true},
	{name: "part of the name section too long", wasm: preamble + section(0, "\x04name\x01\x02\x00\x00"), wrong: "longer than its content: 1 extra bytes"},
	{name: "many function names announced", wasm: preamble + section(0, "\x04name\x01\x05\xff\xff\xff\xff\x0f"), wrong: "the number of function names is"},
	{name: "many functions with local names announced", wasm: preamble + section(0, "\x04name\x02\x05\xff\xff\xff\xff\x0f"), wrong: "the number of functions with named locals is"},
	{name: "many local names announced", wasm: preamble + section(0, "\x04name\x02\x07\x01\x00\xff\xff\xff\xff\x0f"), wrong: "the number of names of locals is"},
	{name: "local names", wasm: preamble + section(0, "\x04name\x02\x06\x01\x00\x01\x00\x01x"), wrong: ""},

	{name: "instruction that does not exist", wasm: withBody("\x60\x00\x00", "\x00\x27\x0b"), wrong: "no instruction 0x27"},
	{name: "instruction that does not exist behind a prefix", wasm: withBody("\x60\x00\x00", "\x00\xfd\x9a\x01\x0b"), wrong: "no instruction 0xfd9a"},
	{name: "prefix at the end", wasm: withBody("\x60\x00\x00", "\x00\xfc"), wrong: "cut off"},
	{name: "long number of a vector instruction", wasm: withBody("\x60\x00\x00", "\x00\x00\xfd\x8e\x00\x0b"), wrong: "not in its shortest form", lenient: true},
	{name: "long number of another instruction", wasm: withBody("\x60\x00\x00", "\x00\x43\x00\x00\x00\x00\xfc\x80\x00\x1a\x0b"), wrong: "not in its shortest form"},
	{name: "number cut off", wasm: withBody("\x60\x00\x00", "\x00\x41\xff"), wrong: "cut off or too large"},
	{name: "number too large", wasm: withBody("\x60\x00\x00", "\x00\x42\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x1a\x0b"), wrong: "cut off or too large"},
	{name: "float cut off", wasm: withBody("\x60\x00\x00", "\x00\x44\x00\x0b"), wrong: "cut off"},
	{name: "vector cut off", wasm: withBody("\x60\x00\x00", "\x00\xfd\x0c\x00\x0b"), wrong: "cut off"},
	{name: "alignment too large", wasm: withBody("\x60\x00\x00", "\x00\x41\x00\x28\x20\x00\x1a\x0b"), wrong: "alignment is too large"},
	{name: "block of a negative type", wasm: withBody("\x60\x00\x00", "\x00\x02\xc0\x7f\x0b\x0b"), wrong: "a block has an unknown type", lenient: true},
	{name: "block of a wrong type", wasm: withBody("\x60\x00\x00", "\x00\x02\x41\x0b\x0b"), wrong: "an instruction has an unknown type"},
	{name: "block of a large type", wasm: withBody("\x60\x00\x00", "\x00\x02\xff\xff\xff\xff\x0f\x0b\x0b"), wrong: "a block has an unknown type"},
	{name: "select of two types", wasm: withBody("\x60\x00\x00", "\x00\x00\x1c\x02\x7f\x7f\x1a\x0b"), wrong: "must state exactly one type"},
	{name: "select of no type", wasm: withBody("\x60\x00\x00", "\x00\x00\x1c\x01\x40\x1a\x0b"), wrong: "an instruction has an unknown type"},
	{name: "null of a number", wasm: withBody("\x60\x00\x00", "\x00\xd0\x7f\x1a\x0b"), wrong: "an instruction has an unknown type"},
	{name: "many targets announced", wasm: withBody("\x60\x00\x00", "\x00\x41\x00\x0e\xff\xff\xff\xff\x0f\x00\x0b"), wrong: "br_table is cut off"},
}

func TestReadDamaged(t *testing.T) {
	j := newJudge(t)
	for _, c := range malformedModules {
		t.Run(c.name, func(t *testing.T) {
			_, err := valid([]byte(c.wasm), wasmbin.Limits{})
			expect(t, err, c.wrong)
			if strings.Contains(c.name, "announced") {
				return // wazero would allocate them all
			}
			if theirs := j.accepts([]byte(c.wasm)); (theirs == nil) != (c.wrong == "" || c.lenient) {
				t.Errorf("wazero says %v", theirs)
			}
		})
	}
}

// Every prefix of a module is refused, without a panic.
func TestReadBeginnings(t *testing.T) {
	m := world(t)
	m.Names, m.Customs = nil, nil // a module may end before them
	wasm := m.Write()
	for n := range wasm {
		if _, err := valid(wasm[:n], wasmbin.Limits{}); n == len(preamble) {
			if err != nil {
				t.Errorf("the preamble is refused: %v", err)
			}
		} else if err == nil {
			if rest, err := wasmbin.Read(wasm[:n], wasmbin.Limits{}); err != nil || len(rest.Code) > 0 {
				t.Errorf("%d bytes of %d are accepted", n, len(wasm))
			}
		} else if abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// features lists modules that need more than Wasm 2.0, by the feature they
// need.
var features = []struct {
	feature, wasm string
	lenient       bool // wazero accepts it
}{
	{feature: "the component model", wasm: "\x00asm\x0d\x00\x01\x00"},
	{feature: "threads", wasm: preamble + section(5, "\x01\x03\x01\x01")},
	{feature: "threads", wasm: preamble + section(6, "\x01\x7f\x02\x41\x00\x0b")},
	{feature: "threads", wasm: withBody("\x60\x00\x00", "\x00\xfe\x03\x00\x0b")},
	{feature: "tail calls", wasm: withBody("\x60\x00\x00", "\x00\x12\x00\x0b")},
	{feature: "tail calls", wasm: withBody("\x60\x00\x00", "\x00\x41\x00\x13\x00\x00\x0b")},
	{feature: "exception handling", wasm: preamble + section(13, "\x00")},
	{feature: "exception handling", wasm: preamble + section(2, "\x01\x01e\x01t\x04\x00\x00")},
	{feature: "exception handling", wasm: preamble + section(7, "\x01\x01t\x04\x00")},
	{feature: "exception handling", wasm: preamble + section(1, "\x01\x60\x01\x69\x00"), lenient: true},
	{feature: "exception handling", wasm: withBody("\x60\x00\x00", "\x00\x06\x40\x0b\x0b")},
	{feature: "exception handling", wasm: withBody("\x60\x00\x00", "\x00\x1f\x40\x00\x0b\x0b")},
	{feature: "exception handling", wasm: withBody("\x60\x00\x00", "\x00\x08\x00\x0b")},
	{feature: "garbage collection (or typed function references)", wasm: preamble + section(1, "\x01\x5f\x00\x00")},
	{feature: "garbage collection (or typed function references)", wasm: preamble + section(1, "\x01\x4e\x01\x60\x00\x00"), lenient: true},
	{feature: "garbage collection (or typed function references)", wasm: preamble + section(1, "\x01\x60\x01\x64\x00\x00")},
	{feature: "garbage collection (or typed function references)", wasm: preamble + section(4, "\x01\x40\x00\x70\x00\x00\xd0\x70\x0b"), lenient: true},
	{feature: "garbage collection (or typed function references)", wasm: preamble + section(6, "\x01\x6e\x00\xd0\x6e\x0b")},
	{feature: "garbage collection (or typed function references)", wasm: withBody("\x60\x00\x00", "\x00\xfb\x00\x00\x1a\x0b")},
	{feature: "garbage collection (or typed function references)", wasm: withBody("\x60\x00\x00", "\x00\x00\x14\x00\x0b")},
	{feature: "garbage collection (or typed function references)", wasm: withBody("\x60\x00\x00", "\x00\xd0\x70\xd4\x1a\x0b")},
	{feature: "garbage collection (or typed function references)", wasm: withBody("\x60\x00\x00", "\x00\xd0\x00\x1a\x0b")},
	{feature: "garbage collection (or typed function references)", wasm: withBody("\x60\x00\x00", "\x00\x02\x63\x00\x0b\x0b")},
	{feature: "64-bit memories or tables", wasm: preamble + section(5, "\x01\x04\x01")},
	{feature: "64-bit memories or tables", wasm: preamble + section(4, "\x01\x70\x05\x01\x02")},
	{feature: "custom page sizes", wasm: preamble + section(5, "\x01\x08\x01\x00")},
	{feature: "multiple memories", wasm: preamble + section(5, "\x02\x00\x01\x00\x01")},
	{feature: "multiple memories", wasm: preamble + section(2, "\x01\x01e\x01m\x02\x00\x01") + section(5, "\x01\x00\x01")},
	{feature: "multiple memories", wasm: preamble + section(5, "\x01\x00\x01") + section(11, "\x01\x02\x01\x41\x00\x0b\x00")},
	{feature: "multiple memories", wasm: withBody("\x60\x00\x00", "\x00\x3f\x01\x1a\x0b")},
	{feature: "multiple memories", wasm: withBody("\x60\x00\x00", "\x00\x41\x00\x28\x42\x01\x00\x1a\x0b")},
	{feature: "extended constant expressions", wasm: preamble + section(6, "\x01\x7f\x00\x41\x00\x41\x00\x6a\x0b")},
	{feature: "relaxed vector instructions", wasm: withBody("\x60\x00\x00", "\x00\xfd\x80\x02\x1a\x0b")},
	{feature: "string references", wasm: preamble + section(14, "\x00")},
	{feature: "string references", wasm: preamble + section(1, "\x01\x60\x01\x67\x00")},
	{feature: "string references", wasm: withBody("\x60\x00\x00", "\x00\xfb\x82\x01\x00\x1a\x0b")},
	{feature: "stack switching", wasm: preamble + section(1, "\x01\x5d\x00\x00")},
	{feature: "stack switching", wasm: withBody("\x60\x00\x00", "\x00\xe0\x00\x0b")},
	{feature: "wide arithmetic", wasm: withBody("\x60\x00\x00", "\x00\xfc\x13\x0b")},
	{feature: "memory control", wasm: withBody("\x60\x00\x00", "\x00\xfc\x12\x00\x0b")},
	{feature: "half precision", wasm: withBody("\x60\x00\x00", "\x00\xfd\xb0\x02\x0b")},
}

func TestReadRefusesLaterVersions(t *testing.T) {
	j := newJudge(t)
	for _, c := range features {
		_, err := valid([]byte(c.wasm), wasmbin.Limits{})
		e, ok := err.(*abi.Error)
		if !ok || e.Code != abi.Unsupported || e.IDs["feature"] != c.feature || !strings.Contains(e.Message, c.feature) || e.Remedy == "" {
			t.Errorf("%x: want it refused for %s, got %v", c.wasm[len("\x00asm"):], c.feature, err)
		}
		if theirs := j.accepts([]byte(c.wasm)); (theirs == nil) != c.lenient {
			t.Errorf("%x: wazero says %v", c.wasm, theirs)
		}
	}
}
