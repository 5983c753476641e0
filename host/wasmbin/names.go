package wasmbin

import "slices"

// The parts of the name section that this package reads.
const (
	namesModule = 0
	namesFuncs  = 1
	namesLocals = 2 // checked, not kept
)

// readNames reads the name section. Other readers rely on it, so a damaged one
// is refused although nothing here depends on it.
func (d *decoder) readNames() {
	if d.m.Names != nil {
		d.fail("it has two name sections")
		return
	}
	names := &Names{}
	end := d.end
	for d.left() > 0 {
		id := d.byte()
		size := d.u32()
		if d.err != nil || int64(size) > int64(end-d.pos) {
			d.fail("the name section is damaged")
			return
		}
		d.end = d.pos + int(size)
		switch id {
		case namesModule:
			names.Module = d.moduleName()
		case namesFuncs:
			names.Funcs = d.funcNames()
		case namesLocals:
			d.localNames()
		default:
			d.pos = d.end
		}
		if d.err == nil && d.left() > 0 {
			d.fail("a part of the name section is longer than its content: %d extra bytes", d.left())
		}
		if d.err != nil {
			return
		}
		d.end = end
	}
	d.m.Names = names
}

// moduleName has its own limit because wazero puts it before the name of every
// function.
func (d *decoder) moduleName() string {
	at := d.here()
	name := d.name()
	if n := len(name); d.err == nil && n > d.limits.ModuleNameBytes {
		d.tooLarge(at, "ModuleNameBytes", "bytes in its name", uint64(n), uint64(d.limits.ModuleNameBytes))
	}
	return name
}

func (d *decoder) funcNames() []FuncName {
	start := d.pos
	n := d.limited("Functions", "function names", 2, 0, d.limits.Functions)
	// One copy for all names.
	text := string(d.data[start:d.end])
	out := make([]FuncName, 0, n)
	for range n {
		index := d.u32()
		name := d.nameBytes()
		if d.err != nil {
			return nil
		}
		out = append(out, FuncName{index, text[d.pos-start-len(name) : d.pos-start]})
	}
	return out
}

// localNames checks the names of locals, which are not kept.
func (d *decoder) localNames() {
	for range d.limited("Functions", "functions with named locals", 2, 0, d.limits.Functions) {
		d.u32()
		for range d.count("names of locals", 2) {
			d.u32()
			d.nameBytes()
		}
	}
}

// append appends the name section.
func (n *Names) append(dst []byte) []byte {
	return appendSection(dst, SectionCustom, func(dst []byte) []byte {
		dst = appendName(dst, "name")
		if n.Module != "" {
			dst = appendSection(dst, namesModule, func(dst []byte) []byte { return appendName(dst, n.Module) })
		}
		if len(n.Funcs) == 0 {
			return dst
		}
		return appendSection(dst, namesFuncs, func(dst []byte) []byte {
			dst = AppendU32(dst, uint32(len(n.Funcs)))
			for _, f := range n.Funcs {
				dst = appendName(AppendU32(dst, f.Index), f.Name)
			}
			return dst
		})
	})
}

// renumber changes the functions that the names belong to.
func (n *Names) renumber(index func(uint32) uint32) {
	for i := range n.Funcs {
		n.Funcs[i].Index = index(n.Funcs[i].Index)
	}
	slices.SortStableFunc(n.Funcs, func(a, b FuncName) int { return int(int64(a.Index) - int64(b.Index)) })
}
