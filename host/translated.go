package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/translation"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// translated is a module that runs as its translation to Go.
type translated struct {
	code    *translation.Code
	imports []func(*call, []uint64)
	names   []string // of all functions, as traps name them
	prefix  string   // of the functions of the translation, in stacks of Go
	most    uint64   // bytes to which the module itself limits its memory
	least   uint64   // bytes of memory at the start
}

// deepest is how many bytes of stack, as the meter counts them, a translation may use if
// the limit stack is higher. Go ends the process when a goroutine's stack would exceed a
// gigabyte, or a quarter of it on 32-bit machines, and stacks grow by doubling, so they
// have at most 512 or 128 MiB. wazero has ceilings of its own, and traps. Frames of the
// creatures that ship with terrarium are at most 1.2 times what the meter counts; this
// leaves room for thirty times. The default of the limit is never more.
const deepest = 4 << 20 << (^uint(0) >> 63 * 2)

// translate returns the translation of a metered module, if the host has one that may run
// here. wasm are the bytes of the module.
func (h *Host) translate(m *wasmbin.Module, info *abi.ModuleInfo, wasm []byte) *translated {
	code := h.translationOf(wasm)
	if code == nil {
		return nil
	}
	t := &translated{code: code, least: uint64(info.MemoryMin), most: 1 << 32}
	for i := range m.Memories { // info does not distinguish a maximum of 0 from none
		if size := m.Memories[i].Range; size.HasMax {
			t.most = uint64(size.Max) * abi.PageBytes
		}
	}
	for i := range m.Imports {
		imp := &m.Imports[i]
		f := provided[imp.Module][imp.Name]
		if imp.Module == meter.ImportModule {
			f = meterFunctions()[imp.Name]
		}
		t.imports = append(t.imports, f.call)
	}
	t.names = functionNames(m)
	if f := runtime.FuncForPC(reflect.ValueOf(code.New).Pointer()); f != nil {
		t.prefix = f.Name()[:strings.LastIndexByte(f.Name(), '.')+1]
	}
	return t
}

// translationOf returns the translation that may run here in place of a metered module, or
// nil.
func (h *Host) translationOf(metered []byte) *translation.Code {
	if len(h.translations) == 0 {
		return nil
	}
	return h.translations[hexSum(sha256.Sum256(metered))]
}

// translationsOf returns the translations that give the right results on this machine, by
// the hash of their modules.
func translationsOf(codes []translation.Code) map[string]*translation.Code {
	m := map[string]*translation.Code{}
	for i := range codes {
		if c := &codes[i]; c.New != nil && c.Exact(runtime.GOARCH) {
			m[c.SHA256] = c
		}
	}
	return m
}

// functionNames returns the names of all functions as wazero shows them in the stack of a
// trap.
func functionNames(m *wasmbin.Module) []string {
	var names []string
	for i := range m.Imports {
		names = append(names, m.Imports[i].Module+"."+m.Imports[i].Name)
	}
	own, given := len(names), m.Names
	if given == nil {
		given = &wasmbin.Names{}
	}
	for i := range m.Funcs {
		names = append(names, given.Module+".$"+strconv.Itoa(own+i))
	}
	for _, n := range given.Funcs {
		if int(n.Index) >= own && int(n.Index) < len(names) && n.Name != "" {
			names[n.Index] = given.Module + "." + n.Name
		}
	}
	return names
}

// instantiate makes an instance for the calls of an Instance, with its memory.
func (t *translated) instantiate(of *call) (guest, error) {
	of.memory.Allocate(0, t.most)
	if of.memory.Reallocate(t.least) == nil {
		return nil, noMemory()
	}
	g := &translatedGuest{translated: t, call: of}
	g.instance = t.code.New(g)
	return g, nil
}

// translatedGuest is an instance of a translation.
type translatedGuest struct {
	*translated
	call     *call
	instance translation.Instance
}

var (
	_ guest            = (*translatedGuest)(nil)
	_ translation.Host = (*translatedGuest)(nil)
)

// Call implements [translation.Host].
func (g *translatedGuest) Call(function int, stack []uint64) { g.imports[function](g.call, stack) }

// Memory implements [translation.Host].
func (g *translatedGuest) Memory() *[]byte { return &g.call.memory.Bytes }

// Grow implements [translation.Host]. As in wazero, only an attempt to exceed the limit
// memory counts as refused, and not one to exceed what the module itself declares.
func (g *translatedGuest) Grow(pages int64) int64 {
	m := &g.call.memory
	before := int64(len(m.Bytes)) / abi.PageBytes
	after := uint64(before+pages) * abi.PageBytes
	switch {
	case pages == 0:
		return before
	case pages < 0 || pages > math.MaxUint16 || after > g.most || m.Reallocate(after) == nil:
		return -1
	}
	return before
}

func (g *translatedGuest) close(context.Context) error { return nil }

func (g *translatedGuest) function(name string) function {
	return &translatedFunction{g, g.instance.Function(name)}
}

func (g *translatedGuest) counter(name string) counter {
	switch p := g.instance.Global(name).(type) {
	case *int32:
		return (*counter32)(p)
	case *int64:
		return (*counter64)(p)
	case *float32:
		return (*counterF32)(p)
	case *float64:
		return (*counterF64)(p)
	}
	return nil
}

type (
	counter32  int32
	counter64  int64
	counterF32 float32
	counterF64 float64
)

func (c *counter32) Get() uint64   { return uint64(uint32(*c)) }
func (c *counter32) Set(v uint64)  { *c = counter32(uint32(v)) }
func (c *counter64) Get() uint64   { return uint64(*c) }
func (c *counter64) Set(v uint64)  { *c = counter64(v) }
func (c *counterF32) Get() uint64  { return uint64(math.Float32bits(float32(*c))) }
func (c *counterF32) Set(v uint64) { *c = counterF32(math.Float32frombits(uint32(v))) }
func (c *counterF64) Get() uint64  { return math.Float64bits(float64(*c)) }
func (c *counterF64) Set(v uint64) { *c = counterF64(math.Float64frombits(v)) }

// translatedFunction is an exported function of a translation.
type translatedFunction struct {
	guest *translatedGuest
	call  func([]uint64)
}

// CallWithStack implements function.
func (f *translatedFunction) CallWithStack(_ context.Context, stack []uint64) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = f.guest.ended(r)
		}
	}()
	f.call(stack)
	return nil
}

// trapTexts are wazero's texts for traps. The translation panics with most of them.
const (
	trapBounds   = "out of bounds memory access"
	trapTable    = "invalid table access"
	trapType     = "indirect call type mismatch"
	trapDivide   = "integer divide by zero"
	trapOverflow = "integer overflow"
	trapConvert  = "invalid conversion to integer"
	trapCode     = "unreachable"
)

// ended returns the error for a panic that ended the guest, in the form of wazero's. Only a
// panic of the guest itself is a trap.
func (g *translatedGuest) ended(fault any) error {
	if g.call.end != nil || g.call.fault != nil {
		return errors.New("ended" + g.stack())
	}
	reason := ""
	switch f := fault.(type) {
	case string:
		switch f {
		case trapTable, trapOverflow, trapConvert, trapCode:
			reason = f
		}
	case *runtime.TypeAssertionError:
		reason = trapType
	case runtime.Error:
		text := strings.TrimPrefix(f.Error(), "runtime error: ")
		switch {
		case text == trapDivide:
			reason = text
		case strings.HasPrefix(text, "index out of range"), strings.HasPrefix(text, "slice bounds out of range"):
			reason = trapBounds
		}
	}
	if reason == "" {
		return &abi.Error{Code: abi.Internal, Op: g.call.phase.String(), Message: fmt.Sprintf("the translation of %s failed: %v", g.code.Name, fault)}
	}
	return errors.New(reason + g.stack())
}

// tracedFrames is how many frames of the guest a trap shows at most, as in wazero.
const tracedFrames = 30

// stack returns the frames of the guest that is being ended, in the form of wazero's text.
func (g *translatedGuest) stack() string {
	var pcs [512]uintptr // with frames of hostcalls and of panics, and of functions that the compiler has inlined
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var b strings.Builder
	b.WriteString(stackTitle)
	for n := 0; n < tracedFrames; {
		frame, more := frames.Next()
		if index, ok := g.index(frame.Function); ok {
			b.WriteString("\t" + g.names[index] + "()\n")
			n++
		}
		if !more {
			break
		}
	}
	return b.String()
}

// index returns the index of the guest's function that a function of Go translates: fn12 or
// Xfn12, of the generated package or of its type Module.
func (g *translatedGuest) index(name string) (index int, ok bool) {
	name, ok = strings.CutPrefix(name, g.prefix)
	if !ok {
		return 0, false
	}
	name = strings.TrimPrefix(name, "(*Module).")
	name, ok = strings.CutPrefix(strings.TrimPrefix(name, "X"), "fn")
	if !ok {
		return 0, false
	}
	index, err := strconv.Atoi(name)
	return index, err == nil && index >= 0 && index < len(g.names)
}
