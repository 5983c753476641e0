package host

import (
	"crypto/sha256"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

// shape is the declarations of a module, without its code and data.
type shape struct {
	*wasmbin.Module
	functions []uint32       // type index of every function, imported ones first
	manifests [][]byte       // contents of the custom sections with a manifest
	manifest  *abi.Manifest  // set by checkContract
	exported  map[string]int // index of each export
}

func shapeOf(m *wasmbin.Module) *shape {
	s := &shape{Module: m, functions: m.FuncTypes(), exported: make(map[string]int, len(m.Exports))}
	for i := range m.Customs {
		if c := &m.Customs[i]; c.Name == abi.ManifestSection {
			s.manifests = append(s.manifests, c.Bytes)
		}
	}
	for i := range m.Exports {
		s.exported[m.Exports[i].Name] = i
	}
	return s
}

// export returns the export with that name, or nil if there is none.
func (s *shape) export(name string) *wasmbin.Export {
	i, ok := s.exported[name]
	if !ok {
		return nil
	}
	return &s.Exports[i]
}

// exportsFunction reports whether a function is exported by that name.
func (s *shape) exportsFunction(name string) bool {
	e := s.export(name)
	return e != nil && e.Kind == wasmbin.ExternFunc
}

// signatureAt returns the type with that index; ok is false if the module has
// no such type.
func (s *shape) signatureAt(index uint32) (sig signature, ok bool) {
	if int64(index) >= int64(len(s.Types)) {
		return signature{}, false
	}
	t := &s.Types[index]
	return signature{asBytes(t.Params), asBytes(t.Results)}, true
}

func asBytes(types []wasmbin.ValueType) []api.ValueType {
	out := make([]api.ValueType, len(types))
	for i, t := range types {
		out[i] = api.ValueType(t)
	}
	return out
}

// functionType returns the type of a function; ok is false if the module has
// no such function.
func (s *shape) functionType(index uint32) (signature, bool) {
	if int64(index) >= int64(len(s.functions)) {
		return signature{}, false
	}
	return s.signatureAt(s.functions[index])
}

// tableElements returns how many elements all tables have initially.
func (s *shape) tableElements() int64 {
	var n int64
	for _, t := range s.Tables {
		n += int64(t.Min)
	}
	return n
}

func (s *shape) info(sum [sha256.Size]byte, size int64) *abi.ModuleInfo {
	info := &abi.ModuleInfo{
		SHA256:      hexSum(sum),
		Size:        size,
		Manifest:    s.manifest,
		HasInit:     s.exportsFunction(abi.ExportInit),
		HasStop:     s.exportsFunction(abi.ExportStop),
		Initializer: s.exportsFunction(abi.ExportInitialize),
	}
	for i := range s.Imports {
		info.Imports = append(info.Imports, abi.Import{Module: s.Imports[i].Module, Name: s.Imports[i].Name})
	}
	for i := range s.Exports {
		if e := &s.Exports[i]; e.Kind == wasmbin.ExternFunc {
			info.Exports = append(info.Exports, e.Name)
		}
	}
	slices.Sort(info.Exports)
	for _, m := range s.Memories {
		info.MemoryMin = int64(m.Min) * abi.PageBytes
		info.MemoryMax = int64(m.Max) * abi.PageBytes
	}
	return info
}
