package wasmbin_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

// function returns a module with one function of type [i32] -> [].
func function(t testing.TB, text string, locals ...wasmbin.LocalGroup) *wasmbin.Module {
	t.Helper()
	return &wasmbin.Module{Types: []wasmbin.FuncType{{Params: types(wasmbin.I32)}}, Funcs: []uint32{0},
		Memories: []wasmbin.Memory{{}}, Code: []wasmbin.Code{code(t, text, locals...)}}
}

// many repeats the result of make.
func many[T any](n int, what func(i int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = what(i)
	}
	return out
}

// capped has for every limit a function that makes a module with exactly n of
// the limited things.
var capped = map[string]func(t testing.TB, n int) *wasmbin.Module{
	"ModuleBytes": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Customs: []wasmbin.Custom{{Name: "x", Bytes: make([]byte, n-12)}}}
	},
	"CustomSections": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Customs: many(n, func(int) wasmbin.Custom { return wasmbin.Custom{Name: "x", Bytes: []byte{1}} })}
	},
	"NameBytes": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Names: &wasmbin.Names{Funcs: []wasmbin.FuncName{{Name: strings.Repeat("x", n)}}}}
	},
	"ModuleNameBytes": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Names: &wasmbin.Names{Module: strings.Repeat("x", n)}}
	},
	"Types": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Types: make([]wasmbin.FuncType, n)}
	},
	"Params": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Types: []wasmbin.FuncType{{Params: many(n, func(int) wasmbin.ValueType { return wasmbin.I64 })}}}
	},
	"Results": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Types: []wasmbin.FuncType{{Results: many(n, func(int) wasmbin.ValueType { return wasmbin.V128 })}}}
	},
	"TypeOperands": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Types: append(many(n-2, func(int) wasmbin.FuncType { return wasmbin.FuncType{Params: types(wasmbin.F32)} }),
			wasmbin.FuncType{Params: types(wasmbin.F32), Results: types(wasmbin.F64)})}
	},
	"Imports": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Imports: many(n, func(int) wasmbin.Import {
			return wasmbin.Import{Module: "e", Kind: wasmbin.ExternGlobal, Value: wasmbin.I32}
		})}
	},
	"Functions": func(t testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Types: []wasmbin.FuncType{{}}, Imports: []wasmbin.Import{{Module: "e"}}, Funcs: make([]uint32, n-1),
			Code: many(n-1, func(int) wasmbin.Code { return code(t, "") })}
	},
	"Tables": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Imports: []wasmbin.Import{{Module: "e", Kind: wasmbin.ExternTable, Value: wasmbin.FuncRef}},
			Tables: many(n-1, func(int) wasmbin.Table { return wasmbin.Table{Type: wasmbin.FuncRef} })}
	},
	"TableElements": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Tables: []wasmbin.Table{{Type: wasmbin.FuncRef, Range: wasmbin.Range{Min: uint32(n - 1)}},
			{Type: wasmbin.ExternRef, Range: wasmbin.Range{Min: 1}}}}
	},
	"MemoryPages": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Memories: []wasmbin.Memory{{Range: wasmbin.Range{Min: uint32(n)}}}}
	},
	"Globals": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Imports: []wasmbin.Import{{Module: "e", Kind: wasmbin.ExternGlobal, Value: wasmbin.I32}},
			Globals: many(n-1, func(int) wasmbin.Global {
				return wasmbin.Global{GlobalType: wasmbin.GlobalType{Type: wasmbin.I32}, Init: wasmbin.ConstExpr{Op: wasmbin.OpI32Const}}
			})}
	},
	"Exports": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Memories: make([]wasmbin.Memory, 1), Exports: many(n, func(i int) wasmbin.Export {
			return wasmbin.Export{Name: strconv.Itoa(i), Kind: wasmbin.ExternMemory}
		})}
	},
	"ElementSegments": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Elements: many(n, func(int) wasmbin.Element { return wasmbin.Element{Mode: wasmbin.Passive, Type: wasmbin.FuncRef} })}
	},
	"Elements": func(t testing.TB, n int) *wasmbin.Module {
		m := function(t, "")
		m.Elements = []wasmbin.Element{
			{Mode: wasmbin.Passive, Type: wasmbin.FuncRef, Funcs: make([]uint32, n-1)},
			{Mode: wasmbin.Passive, Type: wasmbin.FuncRef, UsesExprs: true, Exprs: []wasmbin.ConstExpr{{Op: wasmbin.OpRefFunc}}},
		}
		return m
	},
	"DataSegments": func(_ testing.TB, n int) *wasmbin.Module {
		return &wasmbin.Module{Data: many(n, func(int) wasmbin.Data { return wasmbin.Data{Mode: wasmbin.Passive} })}
	},
	"CodeBytes": func(t testing.TB, n int) *wasmbin.Module {
		m := function(t, "")
		m.AddFunc(0, code(t, strings.Repeat("nop ", n-4)))
		return m
	},
	"TotalLocals": func(t testing.TB, n int) *wasmbin.Module {
		m := function(t, "")
		m.AddFunc(0, code(t, "", wasmbin.LocalGroup{Count: uint32(n - 2), Type: wasmbin.F32}))
		return m
	},
	"TotalMoves": func(t testing.TB, n int) *wasmbin.Module {
		m := function(t, "return")
		m.Types = append(m.Types, wasmbin.FuncType{Results: types(wasmbin.I32)})
		m.AddFunc(1, code(t, "i32.const 1 return"))
		m.AddFunc(1, code(t, "i32.const 1 "+strings.Repeat("return ", n-1)))
		return m
	},

	"BodyBytes": func(t testing.TB, n int) *wasmbin.Module { return function(t, strings.Repeat("nop ", n-2)) },
	"Locals": func(t testing.TB, n int) *wasmbin.Module {
		return function(t, "", wasmbin.LocalGroup{Count: uint32(n - 2), Type: wasmbin.I32}, wasmbin.LocalGroup{Count: 1, Type: wasmbin.V128})
	},
	"BlockDepth": func(t testing.TB, n int) *wasmbin.Module {
		return function(t, "block _ end "+strings.Repeat("loop _ ", n)+strings.Repeat("end ", n))
	},
	"Blocks": func(t testing.TB, n int) *wasmbin.Module {
		return function(t, strings.Repeat("block _ end ", n-2)+"loop _ end local.get 0 if _ else end")
	},
	"BranchTable": func(t testing.TB, n int) *wasmbin.Module {
		return function(t, "local.get 0 br_table "+strings.Repeat("0,", n)+"0")
	},
	"Branches": func(t testing.TB, n int) *wasmbin.Module {
		return function(t, "local.get 0 br_if 0 "+strings.Repeat("br 0 ", n-6)+"return local.get 0 br_table 0,0,0,0")
	},
	"StackHeight": func(t testing.TB, n int) *wasmbin.Module {
		return function(t, strings.Repeat("i32.const 0 ", n)+strings.Repeat("drop ", n))
	},
	"OperandMoves": func(t testing.TB, n int) *wasmbin.Module {
		return function(t, strings.Repeat("local.get 0 call 0 ", n-6)+
			"block i32 i32.const 0 br 0 end local.get 0 br_if 0 "+ // 1 + 1 + 0
			"local.get 0 loop 0 br 0 end "+ // 1 + 1
			"block i32 local.get 0 local.get 0 br_table 0 end return") // 1 + 1, none of the return
	},
	"LocalJoins": func(t testing.TB, n int) *wasmbin.Module {
		return function(t, "block _ end", wasmbin.LocalGroup{Count: uint32(n - 1), Type: wasmbin.I64})
	},
}

// amounts holds the counts for limits for which the usual 20 is too little or does not
// fit.
var amounts = map[string]int{"ModuleBytes": 60}

func TestLimits(t *testing.T) {
	j := newJudge(t)
	all := reflect.TypeFor[wasmbin.Limits]()
	for i := range all.NumField() {
		name := all.Field(i).Name
		t.Run(name, func(t *testing.T) {
			build := capped[name]
			if build == nil {
				t.Fatal("nothing is known of this limit")
			}
			n := 20
			if amounts[name] > 0 {
				n = amounts[name]
			}
			wasm := build(t, n).Write()
			if _, err := valid(wasm, only(name, n)); err != nil {
				t.Errorf("the limit itself is refused: %v", err)
			}
			if err := j.accepts(wasm); err != nil {
				t.Errorf("wazero refuses it: %v", err)
			}
			_, err := valid(wasm, only(name, n-1))
			e, ok := err.(*abi.Error)
			if !ok || e.Code != abi.TooLarge {
				t.Fatalf("one too many is not refused: %v", err)
			}
			if e.IDs["limit"] != name || e.IDs["found"] != strconv.Itoa(n) || e.IDs["most"] != strconv.Itoa(n-1) {
				t.Errorf("the ids are wrong: %v", e.IDs)
			}
			for _, part := range []string{strconv.Itoa(n), strconv.Itoa(n - 1), "at byte"} {
				if !strings.Contains(e.Message, part) {
					t.Errorf("the message does not say %q: %s", part, e.Message)
				}
			}
			if !strings.Contains(e.Remedy, name) {
				t.Errorf("the remedy does not name the limit: %s", e.Remedy)
			}
		})
	}
	if len(capped) != all.NumField() {
		t.Errorf("%d limits are tested, there are %d", len(capped), all.NumField())
	}
}

// only returns Limits with a single limit set.
func only(name string, most int) wasmbin.Limits {
	var l wasmbin.Limits
	reflect.ValueOf(&l).Elem().FieldByName(name).SetInt(int64(most))
	return l
}

func TestLimitsOfFunctionsNameThem(t *testing.T) {
	for _, name := range []string{"BodyBytes", "Locals", "BlockDepth", "Blocks", "BranchTable", "Branches", "StackHeight", "OperandMoves", "LocalJoins"} {
		m := capped[name](t, 20)
		m.Imports = []wasmbin.Import{{Module: "e", Kind: wasmbin.ExternFunc}, {Module: "e", Kind: wasmbin.ExternFunc}}
		_, err := valid(m.Write(), only(name, 10))
		if e, ok := err.(*abi.Error); !ok || e.IDs["function"] != "2" || !strings.Contains(e.Message, "in function 2 at byte") {
			t.Errorf("%s: the error does not name the function: %v", name, err)
		}
	}
}

// A count must not be trusted before the entries are seen.
func TestLimitsAgainstSmallModules(t *testing.T) {
	for name, c := range map[string]struct{ wasm, limit string }{
		"2³²−1 locals":           {withBody("\x60\x00\x00", "\x01\xff\xff\xff\xff\x0f\x7f\x0b"), "Locals"},
		"2³⁴ locals":             {withBody("\x60\x00\x00", "\x04\xff\xff\xff\xff\x0f\x7f\xff\xff\xff\xff\x0f\x7f\xff\xff\xff\xff\x0f\x7f\xff\xff\xff\xff\x0f\x7f\x0b"), "Locals"},
		"2³²−1 table elements":   {preamble + section(4, "\x01\x70\x00\xff\xff\xff\xff\x0f"), "TableElements"},
		"200,000 nested blocks":  {withBody("\x60\x00\x00", "\x00"+strings.Repeat("\x02\x40", 200_000)+strings.Repeat("\x0b", 200_001)), "BlockDepth"},
		"quadratic br_table":     {withBody("\x60\x00\x00", "\x00"+strings.Repeat("\x41\x00\x0e\xff\x7f"+strings.Repeat("\x00", 16384), 100)+"\x0b"), "Branches"},
		"a million locals twice": {withBody("\x60\x00\x00", "\x02\xc0\x84\x3d\x7f\xc0\x84\x3d\x7e\x0b"), "Locals"},
	} {
		_, err := valid([]byte(c.wasm), wasmbin.Limits{})
		if e, ok := err.(*abi.Error); !ok || e.Code != abi.TooLarge || e.IDs["limit"] != c.limit {
			t.Errorf("%s: want the limit %s, got %v", name, c.limit, err)
		}
	}
}
