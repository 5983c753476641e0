package wasmbin

// The flags of an element segment.
const (
	elementPassive  = 1 // or, with elementExplicit, declarative
	elementExplicit = 2 // the table is named, or it is declarative
	elementExprs    = 4
	elementFlags    = 7
)

func (d *decoder) readElements() {
	n := d.limited("ElementSegments", "element segments", 3, 0, d.limits.ElementSegments)
	d.m.Elements = make([]Element, 0, n)
	for range n {
		e := d.element()
		if d.err != nil {
			return
		}
		d.m.Elements = append(d.m.Elements, e)
	}
}

func (d *decoder) element() Element {
	at := d.here()
	flags := d.u32()
	if flags > elementFlags {
		d.malformed(at, "an element segment has the unknown flags %#x", flags)
	}
	e := Element{Type: FuncRef, UsesExprs: flags&elementExprs != 0}
	switch {
	case flags&elementPassive == 0:
		if flags&elementExplicit != 0 {
			e.Table = d.u32()
		}
		e.Offset = d.constExpr()
	case flags&elementExplicit != 0:
		e.Mode = Declarative
	default:
		e.Mode = Passive
	}
	if flags&(elementPassive|elementExplicit) != 0 {
		e.Type = d.elementType(e.UsesExprs)
	}
	if e.UsesExprs {
		e.Exprs = make([]ConstExpr, d.elementCount(3))
		for i := range e.Exprs {
			e.Exprs[i] = d.constExpr()
		}
		return e
	}
	e.Funcs = make([]uint32, d.elementCount(1))
	for i := range e.Funcs {
		e.Funcs[i] = d.u32()
	}
	return e
}

// elementType reads the type of the elements of a segment: a reference type
// before expressions, a kind before functions.
func (d *decoder) elementType(exprs bool) ValueType {
	if exprs {
		return d.refType()
	}
	if kind := d.byte(); kind != 0 {
		d.fail("an element segment has elements of the unknown kind %#x", kind)
	}
	return FuncRef
}

func (d *decoder) elementCount(size int) int {
	n := d.limited("Elements", "elements in segments", size, d.elements, d.limits.Elements)
	d.elements += n
	return n
}

func (d *decoder) readData() {
	n := d.limited("DataSegments", "data segments", 2, 0, d.limits.DataSegments)
	d.m.Data = make([]Data, 0, n)
	for range n {
		at := d.here()
		var s Data
		switch flags := d.u32(); flags {
		case 0:
			s.Offset = d.constExpr()
		case 1:
			s.Mode = Passive
		case 2:
			if memory := d.u32(); memory != 0 {
				d.unsupported(at, featureMultiMemory)
			}
			s.Offset = d.constExpr()
		default:
			d.malformed(at, "a data segment has the unknown flags %#x", flags)
		}
		s.Bytes = d.bytes(d.u32())
		if d.err != nil {
			return
		}
		d.m.Data = append(d.m.Data, s)
	}
}

func (d *decoder) readCode() {
	d.m.CodeOffset = d.pos
	n := d.count("bodies", 3)
	if n != len(d.m.Funcs) {
		d.fail("%d functions are declared, but %d have code", len(d.m.Funcs), n)
		return
	}
	d.m.Code = make([]Code, 0, n)
	for i := range n {
		function := d.importedFuncs() + i
		c := d.body(function)
		if d.err != nil {
			return
		}
		d.m.Code = append(d.m.Code, c)
	}
}

// importedFuncs returns how many functions are imported, once all are counted.
func (d *decoder) importedFuncs() int { return d.functions - len(d.m.Funcs) }

// body reads the locals of a function and takes its instructions as they are.
func (d *decoder) body(function int) Code {
	at := place{offset: d.pos, function: function}
	size := d.u32()
	if d.err != nil {
		return Code{}
	}
	if int64(size) > int64(d.left()) {
		d.malformed(at, "the body of a function says that it has %d bytes, but only %d are left", size, d.left())
		return Code{}
	}
	d.codeBytes += int(size)
	switch {
	case int(size) > d.limits.BodyBytes:
		d.tooLarge(at, "BodyBytes", "bytes in a body", uint64(size), uint64(d.limits.BodyBytes))
		return Code{}
	case d.codeBytes > d.limits.CodeBytes:
		d.tooLarge(at, "CodeBytes", "bytes of code", uint64(d.codeBytes), uint64(d.limits.CodeBytes))
		return Code{}
	}
	end := d.end
	d.end = d.pos + int(size)
	c := Code{Locals: d.localGroups(function)}
	c.Offset = d.pos
	c.Body = d.bytes(uint32(d.left()))
	if d.err == nil && len(c.Body) == 0 {
		d.malformed(at, "the body of a function is empty")
	}
	if d.err == nil {
		d.end = end
	}
	return c
}

func (d *decoder) localGroups(function int) []LocalGroup {
	at := place{offset: d.pos, function: function}
	n := d.count("groups of locals", 2)
	if n == 0 {
		return nil
	}
	out := d.locals.take(n)
	var total uint64
	for i := range out {
		out[i] = LocalGroup{d.u32(), d.valueType()}
		total += uint64(out[i].Count)
	}
	if d.err == nil && total > uint64(d.limits.Locals) {
		d.tooLarge(at, "Locals", "locals", total, uint64(d.limits.Locals))
	}
	return out
}
