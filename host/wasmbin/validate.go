package wasmbin

import (
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// Validate checks the module by all rules of Wasm 2.0, every instruction
// included, and the limits on functions. It returns its findings about each
// function in Code. It takes time proportional to the size of the module and
// to the operands that calls and branches move, which are limited. It assumes
// that the types in m are value types, as Read has checked.
//
// The error is an *abi.Error as in [Read]; the id "function" is the index of
// the invalid function. A module changed after it was read can be validated
// again; offsets then refer to the original module.
func (m *Module) Validate(limits Limits) ([]FuncInfo, error) {
	limits = limits.withDefaults()
	c := newScope(m)
	for _, check := range []func() error{
		c.checkFunctions, c.checkGlobals, c.checkTables, c.checkExports, c.checkStart, c.checkElements, c.checkData,
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	infos := make([]FuncInfo, len(m.Code))
	v := &validator{scope: c, limits: &limits}
	for i := range m.Code {
		if err := v.function(i); err != nil {
			return nil, err
		}
		infos[i] = v.info
	}
	return infos, nil
}

// scope holds the things that the instructions of a module may refer to.
type scope struct {
	m            *Module
	funcTypes    []uint32
	tables       []Table
	globals      []GlobalType
	constGlobals int // constant expressions may refer to the first globals, the imported ones
	memories     int
	declared     []uint64 // a bit for every function that occurs outside code
}

func newScope(m *Module) *scope {
	c := &scope{m: m, funcTypes: m.FuncTypes(), tables: m.AllTables(), globals: m.AllGlobals(),
		constGlobals: m.ImportedGlobals(), memories: len(m.AllMemories())}
	c.declared = make([]uint64, (len(c.funcTypes)+63)/64)
	return c
}

func (c *scope) declare(function uint32) { c.declared[function/64] |= 1 << (function % 64) }

func (c *scope) isDeclared(function uint32) bool {
	return c.declared[function/64]&(1<<(function%64)) != 0
}

func (c *scope) isFunction(index uint32) bool { return int64(index) < int64(len(c.funcTypes)) }

// invalid returns an error that is not about a function.
func invalid(format string, args ...any) *abi.Error {
	return malformed(place{offset: noOffset, function: noFunction}, fmt.Sprintf(format, args...))
}

func (c *scope) checkFunctions() error {
	if len(c.m.Code) != len(c.m.Funcs) {
		return invalid("%d functions are declared and %d have code", len(c.m.Funcs), len(c.m.Code))
	}
	for i, t := range c.funcTypes {
		if int64(t) >= int64(len(c.m.Types)) {
			return invalid("function %d has type %d, which does not exist", i, t)
		}
	}
	return nil
}

func (c *scope) checkGlobals() error {
	for i := range c.m.Globals {
		g := &c.m.Globals[i]
		if err := c.checkConst(&g.Init, g.Type); err != nil {
			return invalid("global %d: %s", c.constGlobals+i, err)
		}
	}
	return nil
}

// checkConst checks a constant expression. It marks the functions that the
// expression refers to as declared.
func (c *scope) checkConst(e *ConstExpr, want ValueType) error {
	got, err := c.constType(e)
	if err == nil && got != want {
		err = fmt.Errorf("its constant expression has the type %s, but must have %s", got, want)
	}
	return err
}

func (c *scope) constType(e *ConstExpr) (ValueType, error) {
	switch e.Op {
	case OpI32Const:
		return I32, nil
	case OpI64Const:
		return I64, nil
	case OpF32Const:
		return F32, nil
	case OpF64Const:
		return F64, nil
	case OpV128Const:
		return V128, nil
	case OpRefNull:
		return e.Type, nil
	case OpRefFunc:
		if !c.isFunction(e.Index) {
			return 0, fmt.Errorf("there is no function %d", e.Index)
		}
		c.declare(e.Index)
		return FuncRef, nil
	case OpGlobalGet:
		if int64(e.Index) >= int64(c.constGlobals) {
			return 0, fmt.Errorf("its constant expression uses global %d, which is not imported", e.Index)
		}
		if c.globals[e.Index].Mutable {
			return 0, fmt.Errorf("its constant expression uses global %d, which is mutable", e.Index)
		}
		return c.globals[e.Index].Type, nil
	}
	return 0, fmt.Errorf("%s is not allowed in a constant expression", e.Op)
}

func (c *scope) checkTables() error {
	if c.memories > 1 {
		return unsupported(place{offset: noOffset, function: noFunction}, featureMultiMemory)
	}
	for i, t := range c.tables {
		if !t.Type.IsRef() {
			return invalid("table %d has elements of type %s", i, t.Type)
		}
	}
	return nil
}

func (c *scope) checkExports() error {
	names := make(map[string]struct{}, len(c.m.Exports))
	for i := range c.m.Exports {
		e := &c.m.Exports[i]
		if _, twice := names[e.Name]; twice {
			return invalid("the name %q is exported twice", e.Name)
		}
		names[e.Name] = struct{}{}
		total := 0
		switch e.Kind {
		case ExternFunc:
			total = len(c.funcTypes)
		case ExternTable:
			total = len(c.tables)
		case ExternMemory:
			total = c.memories
		case ExternGlobal:
			total = len(c.globals)
		}
		if int64(e.Index) >= int64(total) {
			return invalid("the export %q is %s %d, which does not exist", e.Name, e.Kind, e.Index)
		}
		if e.Kind == ExternFunc {
			c.declare(e.Index)
		}
	}
	return nil
}

func (c *scope) checkStart() error {
	if c.m.Start == nil {
		return nil
	}
	start := *c.m.Start
	if !c.isFunction(start) {
		return invalid("the start function %d does not exist", start)
	}
	if t := &c.m.Types[c.funcTypes[start]]; len(t.Params)+len(t.Results) > 0 {
		return invalid("the start function %d has parameters or results", start)
	}
	return nil
}

func (c *scope) checkElements() error {
	for i := range c.m.Elements {
		if err := c.checkElement(&c.m.Elements[i]); err != nil {
			return invalid("element segment %d: %s", i, err)
		}
	}
	return nil
}

func (c *scope) checkElement(e *Element) error {
	if e.Mode == Active {
		if int64(e.Table) >= int64(len(c.tables)) {
			return fmt.Errorf("there is no table %d", e.Table)
		}
		if t := c.tables[e.Table].Type; t != e.Type {
			return fmt.Errorf("its elements have the type %s, but its table has %s", e.Type, t)
		}
		if err := c.checkConst(&e.Offset, I32); err != nil {
			return fmt.Errorf("its offset: %w", err)
		}
	}
	for _, f := range e.Funcs {
		if !c.isFunction(f) {
			return fmt.Errorf("there is no function %d", f)
		}
		c.declare(f)
	}
	for i := range e.Exprs {
		if err := c.checkConst(&e.Exprs[i], e.Type); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

func (c *scope) checkData() error {
	if c.m.DataCount != nil && int64(*c.m.DataCount) != int64(len(c.m.Data)) {
		return invalid("the data count section says %d, but the number of data segments is %d", *c.m.DataCount, len(c.m.Data))
	}
	for i := range c.m.Data {
		d := &c.m.Data[i]
		if d.Mode == Passive {
			continue
		}
		if c.memories == 0 {
			return invalid("data segment %d needs a memory, but the module has none", i)
		}
		if err := c.checkConst(&d.Offset, I32); err != nil {
			return invalid("data segment %d: %s", i, err)
		}
	}
	return nil
}

// equalTypes reports whether two lists of types are the same.
func equalTypes(a, b []ValueType) bool { return slices.Equal(a, b) }
