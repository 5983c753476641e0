package wasmgen

import "slices"

// body writes the code of one function. Like a validator it tracks the types
// on the stack and the open blocks, and it produces missing operands.
type body struct {
	gen     *generator
	src     *source
	code    buffer
	result  []valueType
	locals  []valueType // parameters first
	params  int
	shared  int // the locals that the steps read and write; after them is scratch
	scratch map[scratch]uint32
	stack   []valueType
	frames  []frame
	nested  int // how deep the operand being produced is
	floor   int // the stack below it, which it must not use
}

// scratch identifies a local used by a few consecutive instructions.
type scratch struct {
	t valueType
	n int
}

type frameKind byte

const (
	blockFrame frameKind = iota
	loopFrame
	ifFrame
	elseFrame
)

// frame is an open block.
type frame struct {
	kind            frameKind
	params, results []valueType
	height          int  // of the stack below its parameters
	dead            bool // after a branch that is always taken
	counter         int  // the local of a loop that counts, or -1
}

// label returns the types that a branch to the frame carries.
func (f *frame) label() []valueType {
	if f.kind == loopFrame {
		return f.params
	}
	return f.results
}

// deepest is how many blocks may be open, so that a long string makes long
// code rather than deeply nested code.
const deepest = 24

// function writes the body of a function with the bytes up to until left.
func (g *generator) function(t funcType, until int) []byte {
	b := &body{gen: g, src: g.src, code: buffer{wide: g.wide}, result: t.results, params: len(t.params), scratch: map[scratch]uint32{}}
	b.locals = append(b.locals, t.params...)
	for range b.src.below(5) {
		kind := pick(b.src, allTypes)
		for range 1 + b.src.below(3) {
			b.locals = append(b.locals, kind)
		}
	}
	if b.src.oneIn(32) {
		b.locals = append(b.locals, slices.Repeat([]valueType{pick(b.src, allTypes)}, 1+b.src.below(300))...)
	}
	b.shared = len(b.locals)
	b.frames = []frame{{kind: blockFrame, results: t.results, counter: -1}}
	b.spend()
	for b.src.left() > until {
		steps[b.src.next()](b)
	}
	for len(b.frames) > 0 {
		b.end()
	}
	return append(b.declarations(), b.code.bytes...)
}

// declarations writes the groups of locals before the code. The standard
// allows empty groups, so some are empty.
func (b *body) declarations() []byte {
	groups, out := uint32(0), buffer{}
	list := b.locals[b.params:]
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n] == list[0] {
			n++
		}
		out.u32(uint32(n))
		out.raw(byte(list[0]))
		groups++
		list = list[n:]
	}
	if b.src.oneIn(16) {
		out.u32(0)
		out.raw(byte(pick(b.src, allTypes)))
		groups++
	}
	head := buffer{}
	head.u32(groups)
	return append(head.bytes, out.bytes...)
}

func (b *body) top() *frame {
	return &b.frames[len(b.frames)-1]
}

func (b *body) push(types ...valueType) {
	b.stack = append(b.stack, types...)
}

func (b *body) pop(n int) {
	b.stack = b.stack[:len(b.stack)-n]
}

// die marks the rest of the block as unreachable: its stack has any types that
// the code requires.
func (b *body) die() {
	f := b.top()
	f.dead = true
	b.stack = b.stack[:f.height]
}

// need makes types the top of the stack, reusing the values there as far as
// they fit.
func (b *body) need(types ...valueType) {
	f := b.top()
	if f.dead && len(b.stack) == f.height && b.src.oneIn(2) {
		b.push(types...) // dead code may take operands that were never pushed
		return
	}
	have := min(len(types), len(b.stack)-max(f.height, b.floor))
	for !slices.Equal(types[:have], b.stack[len(b.stack)-have:]) {
		have--
	}
	for _, t := range types[have:] {
		b.produce(t)
	}
}

// settle makes types the whole stack of the block.
func (b *body) settle(types []valueType) {
	f := b.top()
	if f.dead && len(b.stack) == f.height && b.src.oneIn(2) {
		b.push(types...)
		return
	}
	have := b.stack[f.height:]
	same := 0
	for same < len(have) && same < len(types) && have[same] == types[same] {
		same++
	}
	for len(b.stack) > f.height+same {
		b.op(opDrop)
		b.pop(1)
	}
	for _, t := range types[same:] {
		b.produce(t)
	}
}

// scratchLocal returns the n-th local of a type that the steps do not use.
func (b *body) scratchLocal(t valueType, n int) uint32 {
	key := scratch{t, n}
	if _, ok := b.scratch[key]; !ok {
		b.scratch[key] = b.newLocal(t)
	}
	return b.scratch[key]
}

func (b *body) newLocal(t valueType) uint32 {
	b.locals = append(b.locals, t)
	return uint32(len(b.locals) - 1)
}

func (b *body) op(code byte) {
	b.code.raw(code)
}

// indexed emits an instruction followed by an index.
func (b *body) indexed(code byte, index uint32) {
	b.op(code)
	b.code.u32(index)
}

// prefixed emits an instruction of two bytes and its indices.
func (b *body) prefixed(prefix byte, code uint32, indices ...uint32) {
	b.op(prefix)
	sub := buffer{}
	sub.u32(code)
	b.code.raw(sub.bytes...)
	for _, i := range indices {
		b.code.u32(i)
	}
}
