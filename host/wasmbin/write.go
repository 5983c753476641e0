package wasmbin

import "encoding/binary"

// Write returns the module in the binary format. The original encoding is not
// preserved: numbers are written in their shortest form and only non-empty
// sections appear. Bodies are copied unchanged.
func (m *Module) Write() []byte {
	return m.Append(make([]byte, 0, m.sizeHint()))
}

// Append appends the module in the binary format to dst, see [Module.Write].
func (m *Module) Append(dst []byte) []byte {
	dst = append(append(dst, magic...), versionModule...)
	custom := 0
	customs := func(before int) {
		for custom < len(m.Customs) && m.Customs[custom].After.rank() < before {
			dst = m.Customs[custom].append(dst)
			custom++
		}
	}
	for _, s := range sectionOrder {
		customs(s.id.rank())
		if !m.empty(s.id) {
			dst = appendSection(dst, s.id, func(dst []byte) []byte { return s.content(m, dst) })
		}
	}
	for ; custom < len(m.Customs); custom++ {
		dst = m.Customs[custom].append(dst)
	}
	if m.Names != nil {
		dst = m.Names.append(dst)
	}
	return dst
}

// sectionOrder is the order of sections.
var sectionOrder = [...]struct {
	id      SectionID
	content func(*Module, []byte) []byte
}{
	{SectionType, (*Module).appendTypes},
	{SectionImport, (*Module).appendImports},
	{SectionFunction, func(m *Module, dst []byte) []byte { return appendIndices(dst, m.Funcs) }},
	{SectionTable, (*Module).appendTables},
	{SectionMemory, (*Module).appendMemories},
	{SectionGlobal, (*Module).appendGlobals},
	{SectionExport, (*Module).appendExports},
	{SectionStart, func(m *Module, dst []byte) []byte { return AppendU32(dst, *m.Start) }},
	{SectionElement, (*Module).appendElements},
	{SectionDataCount, func(m *Module, dst []byte) []byte { return AppendU32(dst, uint32(len(m.Data))) }},
	{SectionCode, (*Module).appendCode},
	{SectionData, (*Module).appendData},
}

// empty reports whether a section has no content, so that it is not written.
func (m *Module) empty(s SectionID) bool {
	switch s {
	case SectionType:
		return len(m.Types) == 0
	case SectionImport:
		return len(m.Imports) == 0
	case SectionFunction:
		return len(m.Funcs) == 0
	case SectionTable:
		return len(m.Tables) == 0
	case SectionMemory:
		return len(m.Memories) == 0
	case SectionGlobal:
		return len(m.Globals) == 0
	case SectionExport:
		return len(m.Exports) == 0
	case SectionStart:
		return m.Start == nil
	case SectionElement:
		return len(m.Elements) == 0
	case SectionDataCount:
		return m.DataCount == nil
	case SectionCode:
		return len(m.Code) == 0
	case SectionData:
		return len(m.Data) == 0
	}
	return true
}

// sizeHint returns an estimate of how many bytes Append will append, slightly
// too high.
func (m *Module) sizeHint() int {
	n := 1024 + 8*len(m.Types) + 64*len(m.Imports) + 3*len(m.Funcs) + 24*len(m.Globals) + 32*len(m.Exports)
	for i := range m.Elements {
		n += 32 + 4*len(m.Elements[i].Funcs) + 8*len(m.Elements[i].Exprs)
	}
	for i := range m.Code {
		n += 8 + 4*len(m.Code[i].Locals) + len(m.Code[i].Body)
	}
	for i := range m.Data {
		n += 16 + len(m.Data[i].Bytes)
	}
	for i := range m.Customs {
		n += 16 + len(m.Customs[i].Name) + len(m.Customs[i].Bytes)
	}
	if m.Names != nil {
		for _, f := range m.Names.Funcs {
			n += 6 + len(f.Name)
		}
	}
	return n
}

// appendSection appends a number, the size of the content and the content.
func appendSection(dst []byte, id SectionID, content func([]byte) []byte) []byte {
	const reserved = 5 // the longest size
	dst = append(dst, byte(id))
	at := len(dst)
	dst = content(append(dst, make([]byte, reserved)...))
	size := uint32(len(dst) - at - reserved)
	n := sizeU32(size)
	copy(dst[at+n:], dst[at+reserved:])
	AppendU32(dst[:at], size)
	return dst[:at+n+int(size)]
}

func appendName(dst []byte, name string) []byte {
	return append(AppendU32(dst, uint32(len(name))), name...)
}

func appendIndices(dst []byte, indices []uint32) []byte {
	dst = AppendU32(dst, uint32(len(indices)))
	for _, i := range indices {
		dst = AppendU32(dst, i)
	}
	return dst
}

func (c *Custom) append(dst []byte) []byte {
	return appendSection(dst, SectionCustom, func(dst []byte) []byte {
		return append(appendName(dst, c.Name), c.Bytes...)
	})
}

func (m *Module) appendTypes(dst []byte) []byte {
	dst = AppendU32(dst, uint32(len(m.Types)))
	for _, t := range m.Types {
		dst = appendValueTypes(append(dst, formFunc), t.Params)
		dst = appendValueTypes(dst, t.Results)
	}
	return dst
}

func appendValueTypes(dst []byte, types []ValueType) []byte {
	dst = AppendU32(dst, uint32(len(types)))
	for _, t := range types {
		dst = append(dst, byte(t))
	}
	return dst
}

func (m *Module) appendImports(dst []byte) []byte {
	dst = AppendU32(dst, uint32(len(m.Imports)))
	for i := range m.Imports {
		imp := &m.Imports[i]
		dst = append(appendName(appendName(dst, imp.Module), imp.Name), byte(imp.Kind))
		switch imp.Kind {
		case ExternFunc:
			dst = AppendU32(dst, imp.Type)
		case ExternTable:
			dst = imp.Size.append(append(dst, byte(imp.Value)))
		case ExternMemory:
			dst = imp.Size.append(dst)
		case ExternGlobal:
			dst = GlobalType{imp.Value, imp.Mutable}.append(dst)
		}
	}
	return dst
}

func (r Range) append(dst []byte) []byte {
	if !r.HasMax {
		return AppendU32(append(dst, 0), r.Min)
	}
	return AppendU32(AppendU32(append(dst, rangeHasMax), r.Min), r.Max)
}

func (g GlobalType) append(dst []byte) []byte {
	dst = append(dst, byte(g.Type))
	if g.Mutable {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// append appends the expression and its end.
func (e ConstExpr) append(dst []byte) []byte {
	dst = e.Op.Append(dst)
	switch e.Op {
	case OpI32Const, OpI64Const:
		dst = AppendS64(dst, int64(e.Lo))
	case OpF32Const:
		dst = binary.LittleEndian.AppendUint32(dst, uint32(e.Lo))
	case OpF64Const:
		dst = binary.LittleEndian.AppendUint64(dst, e.Lo)
	case OpV128Const:
		dst = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, e.Lo), e.Hi)
	case OpRefNull:
		dst = append(dst, byte(e.Type))
	case OpRefFunc, OpGlobalGet:
		dst = AppendU32(dst, e.Index)
	}
	return append(dst, byte(OpEnd))
}

func (m *Module) appendTables(dst []byte) []byte {
	dst = AppendU32(dst, uint32(len(m.Tables)))
	for _, t := range m.Tables {
		dst = t.Range.append(append(dst, byte(t.Type)))
	}
	return dst
}

func (m *Module) appendMemories(dst []byte) []byte {
	dst = AppendU32(dst, uint32(len(m.Memories)))
	for _, mem := range m.Memories {
		dst = mem.append(dst)
	}
	return dst
}

func (m *Module) appendGlobals(dst []byte) []byte {
	dst = AppendU32(dst, uint32(len(m.Globals)))
	for i := range m.Globals {
		dst = m.Globals[i].Init.append(m.Globals[i].GlobalType.append(dst))
	}
	return dst
}

func (m *Module) appendExports(dst []byte) []byte {
	dst = AppendU32(dst, uint32(len(m.Exports)))
	for i := range m.Exports {
		e := &m.Exports[i]
		dst = AppendU32(append(appendName(dst, e.Name), byte(e.Kind)), e.Index)
	}
	return dst
}

func (m *Module) appendElements(dst []byte) []byte {
	dst = AppendU32(dst, uint32(len(m.Elements)))
	for i := range m.Elements {
		dst = m.Elements[i].append(dst)
	}
	return dst
}

func (e *Element) append(dst []byte) []byte {
	flags := byte(0)
	switch {
	case e.Mode == Passive:
		flags = elementPassive
	case e.Mode == Declarative:
		flags = elementPassive | elementExplicit
	case e.Table != 0 || e.Type != FuncRef:
		flags = elementExplicit
	}
	if e.UsesExprs {
		flags |= elementExprs
	}
	dst = append(dst, flags)
	if e.Mode == Active {
		if flags&elementExplicit != 0 {
			dst = AppendU32(dst, e.Table)
		}
		dst = e.Offset.append(dst)
	}
	if flags&(elementPassive|elementExplicit) != 0 {
		if e.UsesExprs {
			dst = append(dst, byte(e.Type))
		} else {
			dst = append(dst, 0)
		}
	}
	if !e.UsesExprs {
		return appendIndices(dst, e.Funcs)
	}
	dst = AppendU32(dst, uint32(len(e.Exprs)))
	for _, x := range e.Exprs {
		dst = x.append(dst)
	}
	return dst
}

// CodeOffsets returns the start of each body in the content of the code section
// that Write makes.
func (m *Module) CodeOffsets() []int {
	offsets, at := make([]int, len(m.Code)), sizeU32(uint32(len(m.Code)))
	for i := range m.Code {
		c := &m.Code[i]
		size := c.size()
		at += sizeU32(uint32(size)) + size
		offsets[i] = at - len(c.Body)
	}
	return offsets
}

// size returns how many bytes the code takes after its own size.
func (c *Code) size() int {
	size := sizeU32(uint32(len(c.Locals))) + len(c.Body)
	for _, g := range c.Locals {
		size += sizeU32(g.Count) + 1
	}
	return size
}

func (m *Module) appendCode(dst []byte) []byte {
	dst = AppendU32(dst, uint32(len(m.Code)))
	for i := range m.Code {
		c := &m.Code[i]
		dst = AppendU32(dst, uint32(c.size()))
		dst = AppendU32(dst, uint32(len(c.Locals)))
		for _, g := range c.Locals {
			dst = append(AppendU32(dst, g.Count), byte(g.Type))
		}
		dst = append(dst, c.Body...)
	}
	return dst
}

func (m *Module) appendData(dst []byte) []byte {
	dst = AppendU32(dst, uint32(len(m.Data)))
	for i := range m.Data {
		d := &m.Data[i]
		if d.Mode == Passive {
			dst = append(dst, 1)
		} else {
			dst = d.Offset.append(append(dst, 0))
		}
		dst = append(AppendU32(dst, uint32(len(d.Bytes))), d.Bytes...)
	}
	return dst
}
