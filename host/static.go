package host

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// static is the initial state of a module's instances, as far as the host sets
// it up instead of wazero: the contents of memory, and the names through which
// the host reaches the globals.
type static struct {
	data     []chunk
	bytes    int64  // of all data
	outside  string // names the first segment that does not fit into its table or the memory
	globals  []global
	captured bool // running the guest changes only memory and globals
}

// A chunk is contiguous data.
type chunk struct {
	at    uint64
	bytes []byte
}

// A global is a mutable global of the guest.
type global struct {
	index  uint32
	export string
}

// Standard Go emits tens of thousands of data segments with small gaps between
// them.
const maxGap = 64 // bytes between two chunks that are joined

// maxGlobals is the most globals that are set one by one to start an instance.
const maxGlobals = 256

// prefixGlobal starts the names of the exports through which the host reaches
// the guest's mutable globals.
const prefixGlobal = meter.Reserved + ".global."

// takeStatic removes the active data segments from m, for the host to apply.
// To the guest's instructions each segment is then empty, as the specification
// requires after instantiation.
func takeStatic(m *wasmbin.Module) static {
	s := static{outside: elementOutside(m), captured: true}
	s.findGlobals(m)
	named := s.look(m)
	var memory uint64
	for _, mem := range m.AllMemories() {
		memory = uint64(mem.Min) * abi.PageBytes
	}
	for i := range m.Data {
		d := &m.Data[i]
		if d.Mode != wasmbin.Active {
			continue
		}
		// The offset is a constant: other expressions need an imported global.
		at := uint64(uint32(d.Offset.Lo))
		if at+uint64(len(d.Bytes)) > memory && s.outside == "" {
			s.outside = "data[" + decimal(uint64(i)) + "]: out of bounds memory access"
		}
		s.data = append(s.data, chunk{at, d.Bytes})
		s.bytes += int64(len(d.Bytes))
		*d = wasmbin.Data{Mode: wasmbin.Passive}
	}
	if !named {
		m.Data, m.DataCount = nil, nil
	}
	if s.data = joined(s.data); s.outside != "" {
		s.data = nil // there are no instances
	}
	return s
}

// elementOutside returns an error text for the first active element segment
// that does not fit into its table; wazero would silently skip it.
func elementOutside(m *wasmbin.Module) string {
	tables := m.AllTables()
	for i := range m.Elements {
		e := &m.Elements[i]
		if e.Mode == wasmbin.Active && uint64(uint32(e.Offset.Lo))+uint64(e.Len()) > uint64(tables[e.Table].Min) {
			return "element[" + decimal(uint64(i)) + "]: out of bounds table access"
		}
	}
	return ""
}

// look finds out whether instructions refer to data segments, and whether they
// change anything in an instance other than its memory and globals.
func (s *static) look(m *wasmbin.Module) (namesData bool) {
	for i := range m.Code {
		it := wasmbin.NewInstrs(m.Code[i].Body)
		for it.Next() {
			switch it.Op {
			case wasmbin.OpDataDrop:
				namesData, s.captured = true, false
			case wasmbin.OpMemoryInit:
				namesData = true
			case wasmbin.OpTableSet, wasmbin.OpTableGrow, wasmbin.OpTableFill, wasmbin.OpTableCopy,
				wasmbin.OpTableInit, wasmbin.OpElemDrop:
				s.captured = false
			}
		}
	}
	return namesData
}

// findGlobals records the mutable globals. They can be set only if all of them
// are numbers.
func (s *static) findGlobals(m *wasmbin.Module) {
	for i, g := range m.Globals {
		if !g.Mutable {
			continue
		}
		if g.Type.IsRef() || g.Type == wasmbin.V128 || len(s.globals) == maxGlobals {
			s.globals, s.captured = nil, false
			return
		}
		s.globals = append(s.globals, global{uint32(i), prefixGlobal + decimal(uint64(i))})
	}
}

// exportGlobals exports the globals to the host. It is applied to the metered
// module, because guests may not use reserved names.
func (s *static) exportGlobals(m *wasmbin.Module) {
	for _, g := range s.globals {
		m.AddExport(g.export, wasmbin.ExternGlobal, g.index)
	}
}

// joined returns copies of chunks with the same effect, joining those that lie
// close together. Overlapping chunks stay in their order.
func joined(chunks []chunk) []chunk {
	sorted, gap := slices.Clone(chunks), uint64(maxGap)
	slices.SortStableFunc(sorted, func(a, b chunk) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].at < sorted[i-1].end() {
			sorted, gap = chunks, 0
			break
		}
	}
	var out []chunk
	for _, c := range sorted {
		if last := len(out) - 1; last >= 0 && c.at >= out[last].end() && c.at-out[last].end() <= gap {
			between := make([]byte, c.at-out[last].end())
			out[last].bytes = append(append(out[last].bytes, between...), c.bytes...)
		} else if len(c.bytes) > 0 {
			out = append(out, chunk{c.at, slices.Clone(c.bytes)})
		}
	}
	for i := range out {
		out[i].bytes = slices.Clone(out[i].bytes) // without spare capacity
	}
	return out
}

func (c *chunk) end() uint64 { return c.at + uint64(len(c.bytes)) }

// apply copies the data into a new memory.
func (s *static) apply(memory []byte) {
	for i := range s.data {
		copy(memory[s.data[i].at:], s.data[i].bytes)
	}
}
