package wasmbin

import (
	"fmt"

	"github.com/seed47132306/terrarium/abi"
)

// unknown is the type of an operand that unreachable code takes from below its
// own operands: any type.
const unknown ValueType = 0

// frame is an open block, or at the bottom the function itself.
type frame struct {
	op              Opcode // OpBlock, OpLoop, OpIf, OpElse
	params, results []ValueType
	height          int  // of the operand stack below the block
	unreachable     bool // the rest of the block is unreachable
}

// label returns the types that a branch to the block carries.
func (f *frame) label() []ValueType {
	if f.op == OpLoop {
		return f.params
	}
	return f.results
}

// validator checks one function after another with the algorithm of the
// specification's appendix. Its stacks are reused between functions.
type validator struct {
	*scope
	limits *Limits
	it     Instrs
	info   FuncInfo

	totalLocals, totalMoves uint64 // of all functions so far

	index      int         // of the function among the defined ones
	signature  *FuncType   // of the function
	locals     []ValueType // the parameters and the first declared locals
	localEnds  []uint32    // the index after each group of locals
	localGroup []ValueType // the type of each group
	stack      []ValueType
	frames     []frame
	height     int  // of the innermost frame
	dead       bool // the innermost frame is unreachable
	err        *abi.Error
}

// directLocals is how many locals have their type in a list. For the others
// the groups are searched, so that a few bytes cannot require a long list.
const directLocals = 256

func (v *validator) function(i int) error {
	v.index, v.err = i, nil
	v.info = FuncInfo{}
	code := &v.m.Code[i]
	v.it = NewInstrs(code.Body)
	v.signature = &v.m.Types[v.m.Funcs[i]]
	v.declareLocals(code)
	v.stack = v.stack[:0]
	v.frames = v.frames[:0]
	v.open(OpBlock, nil, v.signature.Results)
	for v.err == nil && len(v.frames) > 0 && v.it.Next() {
		v.info.Instrs++
		if v.it.info.special {
			v.special()
		} else {
			v.simple()
		}
	}
	switch {
	case v.err != nil:
	case v.it.fault != nil:
		v.err = v.it.fault.error(v.place(v.it.fault.pos))
	case len(v.frames) > 0:
		v.it.Start = len(code.Body)
		v.fail("the function ends before its last end")
	case v.it.End < len(code.Body):
		v.it.Start = v.it.End
		v.fail("the function continues after its last end")
	}
	if v.err != nil {
		return v.err
	}
	return nil
}

// place returns the place of an instruction, given its position in the body.
func (v *validator) place(pos int) place {
	offset := v.m.Code[v.index].Offset
	imported := len(v.funcTypes) - len(v.m.Funcs)
	return place{offset: offset + pos, function: imported + v.index, relative: offset == 0}
}

func (v *validator) refuse(err *abi.Error) {
	if v.err == nil {
		v.err = err
	}
}

func (v *validator) fail(message string) {
	if v.err == nil {
		v.refuse(malformed(v.place(v.it.Start), message))
	}
}

// most refuses a function that exceeds a limit.
func (v *validator) most(limit, what string, found uint64, most int) {
	if found > uint64(most) {
		v.refuse(tooLarge(v.place(v.it.Start), limit, what, found, uint64(most)))
	}
}

func (v *validator) declareLocals(code *Code) {
	v.locals = append(v.locals[:0], v.signature.Params...)
	v.localEnds, v.localGroup = v.localEnds[:0], v.localGroup[:0]
	total, slots := uint64(len(v.signature.Params)), uint64(0)
	for _, t := range v.signature.Params {
		slots += uint64(t.slots())
	}
	for _, g := range code.Locals {
		if total += uint64(g.Count); total > uint64(v.limits.Locals) {
			break
		}
		slots += uint64(g.Count) * uint64(g.Type.slots())
		v.localEnds = append(v.localEnds, uint32(total))
		v.localGroup = append(v.localGroup, g.Type)
		for n := min(int(g.Count), directLocals-len(v.locals)); n > 0; n-- {
			v.locals = append(v.locals, g.Type)
		}
	}
	v.info.Params = uint32(len(v.signature.Params))
	v.info.Locals = uint32(total) - v.info.Params
	v.info.LocalSlots = uint32(slots)
	v.it.Start = 0
	v.most("Locals", "locals", total, v.limits.Locals)
	v.totalLocals += total
	v.most("TotalLocals", "locals in all functions up to this one", v.totalLocals, v.limits.TotalLocals)
}

// local returns the type of a local; ok is false if there is none.
func (v *validator) local(index uint32) (t ValueType, ok bool) {
	if int64(index) < int64(len(v.locals)) {
		return v.locals[index], true
	}
	low, high := 0, len(v.localEnds)
	for low < high {
		if mid := (low + high) / 2; v.localEnds[mid] <= index {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(v.localEnds) {
		return 0, false
	}
	return v.localGroup[low], true
}

func (v *validator) push(t ValueType) {
	v.stack = append(v.stack, t)
	if n := uint32(len(v.stack)); n > v.info.StackHeight {
		v.info.StackHeight = n
		v.most("StackHeight", "operands at once", uint64(n), v.limits.StackHeight)
	}
	if t == V128 {
		v.info.Vectors = true
	}
}

func (v *validator) pushAll(types []ValueType) {
	for _, t := range types {
		v.push(t)
	}
}

// pop takes an operand of type want, or of any type if want is unknown, off
// the stack. It returns the operand's type.
func (v *validator) pop(want ValueType) ValueType {
	top := len(v.stack) - 1
	if top < v.height {
		if !v.dead {
			v.missing(want)
		}
		return unknown
	}
	got := v.stack[top]
	v.stack = v.stack[:top]
	if got != want && got != unknown && want != unknown {
		v.mismatch(got, want)
	}
	return got
}

func (v *validator) missing(want ValueType) {
	what := "operand"
	if want != unknown {
		what = "operand of type " + want.String()
	}
	v.fail(fmt.Sprintf("%s needs an %s, but the block has none left", v.it.Op, what))
}

func (v *validator) mismatch(got, want ValueType) {
	v.fail(fmt.Sprintf("%s takes %s, but gets %s", v.it.Op, want, got))
}

// popAll takes operands of these types off the stack, the last one on top.
func (v *validator) popAll(types []ValueType) {
	for i := len(types) - 1; i >= 0 && v.err == nil; i-- {
		v.pop(types[i])
	}
}

// peekAll checks operands of these types and leaves them on the stack; unknown
// ones stay unknown.
func (v *validator) peekAll(types []ValueType) {
	for i := range types {
		at := len(v.stack) - 1 - i
		want := types[len(types)-1-i]
		if at < v.height {
			if !v.dead {
				v.missing(want)
			}
			return
		}
		if got := v.stack[at]; got != want && got != unknown {
			v.mismatch(got, want)
			return
		}
	}
}

// open enters a block. Its parameters are on the stack and stay there.
func (v *validator) open(op Opcode, params, results []ValueType) {
	v.frames = append(v.frames, frame{op: op, params: params, results: results, height: len(v.stack)})
	v.height, v.dead = len(v.stack), false
	v.pushAll(params)
}

// close checks the operands that the innermost block leaves on the stack and
// leaves the block.
func (v *validator) close() frame {
	f := v.frames[len(v.frames)-1]
	v.popAll(f.results)
	if v.err == nil && len(v.stack) != f.height {
		v.fail(fmt.Sprintf("a block ends with more operands than results: %d extra", len(v.stack)-f.height))
	}
	v.frames = v.frames[:len(v.frames)-1]
	if n := len(v.frames); n > 0 {
		v.height, v.dead = v.frames[n-1].height, v.frames[n-1].unreachable
	}
	return f
}

// leave marks the rest of the block as unreachable.
func (v *validator) leave() {
	v.stack = v.stack[:v.height]
	v.frames[len(v.frames)-1].unreachable = true
	v.dead = true
}

// moves counts the operands that an instruction moves or compares.
func (v *validator) moves(n int) {
	v.info.Moves += uint32(min(n, 1<<24))
	v.totalMoves += uint64(n)
	v.most("TotalMoves", "operands moved in all functions up to this one", v.totalMoves, v.limits.TotalMoves)
	v.most("OperandMoves", "operands moved by calls, blocks and branches", uint64(v.info.Moves), v.limits.OperandMoves)
}
