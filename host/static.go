package host

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// static is what a module says about the beginning of its instances, as far as
// the host sees to it in wazero's place: the contents of memory, and by which
// names the host reaches the globals.
type static struct {
	data     []chunk
	bytes    int64  // of all data
	outside  string // the first segment that does not fit into its table or the memory
	globals  []global
	captured bool // memory and globals are all that a run can change in an instance
}

// A chunk is data that lies in one piece.
type chunk struct {
	at    uint64
	bytes []byte
}

// A global is a mutable global of the guest.
type global struct {
	index  uint32
	export string
}

// Standard Go leaves tens of thousands of data segments with little room between
// them.
const maxGap = 64 // bytes between two chunks that are made one

// maxGlobals is how many globals are set one by one to begin an instance.
const maxGlobals = 256

// prefixGlobal begins the names of the exports by which the host reaches the
// guest's mutable globals.
const prefixGlobal = meter.Reserved + ".global."

// takeStatic takes the active data segments out of m, for the host to apply. To
// the instructions of the guest each is empty from the start, as the
// specification has it after instantiation.
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
		// It is a constant: other expressions need a global that is imported.
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

// elementOutside finds the first active element segment that does not fit into
// its table, which wazero would leave out without a word, and says so.
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

// look finds out whether instructions name data segments, and whether they
// change anything of an instance but its memory and its globals.
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

// findGlobals notes the mutable globals. They can be set only if all of them
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

// exportGlobals lets the host reach the globals. It is for the metered module,
// because guests may not use reserved names.
func (s *static) exportGlobals(m *wasmbin.Module) {
	for _, g := range s.globals {
		m.AddExport(g.export, wasmbin.ExternGlobal, g.index)
	}
}

// joined returns chunks with the same effect in memory of their own: fewer,
// where they lie close together. Those that overlap stay in their order.
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
		out[i].bytes = slices.Clone(out[i].bytes) // without the room to grow
	}
	return out
}

func (c *chunk) end() uint64 { return c.at + uint64(len(c.bytes)) }

// apply puts the data into a memory that is new.
func (s *static) apply(memory []byte) {
	for i := range s.data {
		copy(memory[s.data[i].at:], s.data[i].bytes)
	}
}
