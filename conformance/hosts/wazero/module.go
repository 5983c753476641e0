package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
)

// reader reads the binary format. At the end of the bytes it returns zeros.
type reader struct{ b []byte }

func (r *reader) take(n uint64) []byte {
	n = min(n, uint64(len(r.b)))
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	r.take(uint64(max(size, 0)))
	return n
}

func (r *reader) name() string { return string(r.take(r.uint())) }

// limits reads the limits of a table or a memory; most is -1 without a maximum.
func (r *reader) limits() (least, most int64) {
	flags := r.uint()
	least, most = int64(r.uint()), -1
	if flags&1 != 0 {
		most = int64(r.uint())
	}
	return least, most
}

// section calls f with the content of every section of that number.
func section(wasm []byte, id byte, f func(r *reader)) {
	for r := (&reader{wasm[min(8, len(wasm)):]}); len(r.b) > 0; {
		if n := r.take(1)[0]; n == id {
			f(&reader{r.take(r.uint())})
		} else {
			r.take(r.uint())
		}
	}
}

// signatures has the types of the optional and required exports of functions.
var signatures = []struct {
	name            string
	params, results []api.ValueType
}{
	{abi.ExportHandle, []api.ValueType{api.ValueTypeI32, api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}},
	{abi.ExportInit, nil, []api.ValueType{api.ValueTypeI32}},
	{abi.ExportStop, nil, nil},
	{abi.ExportInitialize, nil, nil},
}

// check compiles a module, and returns why it is refused.
func (w *world) check(ctx context.Context, wasm []byte) (m wazero.CompiledModule, wrong []*abi.Error) {
	m, err := w.runtime.CompileModule(ctx, wasm)
	if err != nil {
		return nil, []*abi.Error{fail(abi.InvalidArgument, "%v", err)}
	}
	refuse := func(code abi.Code, format string, args ...any) { wrong = append(wrong, fail(code, format, args...)) }
	section(wasm, 2, func(r *reader) {
		for range r.uint() {
			if len(r.b) == 0 {
				return
			}
			module, name := r.name(), r.name()
			switch kind := r.uint(); kind {
			case 0: // a function; its type is below
				r.uint()
				continue
			case 1: // a table
				r.uint()
				r.limits()
			case 2:
				r.limits()
			default:
				r.uint()
				r.uint()
			}
			refuse(abi.Unsupported, "the import %s.%s is not a function", module, name)
		}
	})
	for _, f := range m.ImportedFunctions() {
		module, name, _ := f.Import()
		if want, ok := w.provided[module+"."+name]; !ok {
			refuse(abi.Unsupported, "the import %s.%s does not exist", module, name)
		} else if !want.same(f) {
			refuse(abi.InvalidArgument, "the import %s.%s has another type: %v", module, name, want)
		}
	}
	if m.ExportedMemories()[abi.ExportMemory] == nil {
		refuse(abi.InvalidArgument, "the export memory is missing, or is not a memory")
	}
	exports := m.ExportedFunctions()
	if exports[abi.ExportMarker] == nil {
		refuse(abi.InvalidArgument, "the export %s is missing, or is not a function", abi.ExportMarker)
	}
	for _, s := range signatures {
		if f := exports[s.name]; f == nil && s.name == abi.ExportHandle || f != nil && !(signature{s.params, s.results}).same(f) {
			refuse(abi.InvalidArgument, "the export %s is missing, or has another type", s.name)
		}
	}
	return m, append(wrong, manifests(wasm)...)
}

func (s signature) same(f api.FunctionDefinition) bool {
	return slices.Equal(f.ParamTypes(), s.params) && slices.Equal(f.ResultTypes(), s.results)
}

// manifests returns what is wrong with the manifest.
func manifests(wasm []byte) (wrong []*abi.Error) {
	var texts [][]byte
	section(wasm, 0, func(r *reader) {
		if r.name() == abi.ManifestSection {
			texts = append(texts, r.b)
		}
	})
	if len(texts) > 1 {
		wrong = append(wrong, fail(abi.InvalidArgument, "there are several sections %s", abi.ManifestSection))
	}
	for _, text := range texts {
		var m struct{ ABI []int }
		if err := json.Unmarshal(text, &m); err != nil || !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) || len(text) > abi.MaxManifestBytes {
			wrong = append(wrong, fail(abi.InvalidArgument, "the manifest is not a JSON object of at most %d bytes", abi.MaxManifestBytes))
		} else if len(m.ABI) > 0 && !slices.Contains(m.ABI, abi.Version) {
			wrong = append(wrong, fail(abi.Unsupported, "the manifest does not have version %d of the ABI", abi.Version))
		}
	}
	return wrong
}

// tables returns the number of tables of a module, and their initial elements.
func tables(wasm []byte) (count int, elements int64) {
	section(wasm, 4, func(r *reader) {
		for range r.uint() {
			if len(r.b) == 0 {
				return
			}
			r.uint()
			least, _ := r.limits()
			count, elements = count+1, elements+least
		}
	})
	return count, elements
}

// bound returns a module whose tables cannot grow by more than spare elements together:
// wazero has no bound for a table but the maximum that the module declares.
func bound(wasm []byte, spare int64) []byte {
	out := slices.Clone(wasm[:8])
	for r := (&reader{wasm[8:]}); len(r.b) > 0; {
		id := r.take(1)[0]
		body := r.take(r.uint())
		if id == 4 {
			in := &reader{body}
			count := in.uint()
			body = binary.AppendUvarint(nil, count)
			for range count {
				body = binary.AppendUvarint(body, in.uint())
				least, most := in.limits()
				grown := least + spare/int64(count)
				if most < 0 {
					most = math.MaxUint32
				}
				body = binary.AppendUvarint(append(body, 1), uint64(least))
				body = binary.AppendUvarint(body, uint64(min(grown, most)))
			}
		}
		out = append(binary.AppendUvarint(append(out, id), uint64(len(body))), body...)
	}
	return out
}
