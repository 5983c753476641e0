package policy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// isolate is one JavaScript runtime. One goroutine at a time may use it.
type isolate struct {
	vm        *goja.Runtime
	functions []goja.Callable // by policy, made at first use
	// Functions of the prelude, bounded like those of scripts.
	sealFunction goja.Callable // so that it cannot keep anything
	freeze       goja.Callable // one object
	write        goja.Callable // JSON.stringify

	encodePlain goja.Callable // see encode
	encoder     encoder

	view      *eventView
	about     *contextView
	sight     *sight
	prototype *goja.Object      // of the views, see pristine
	frames    []goja.StackFrame // see callerLine

	now    time.Time
	random *rand.Rand
	source *rand.PCG
	depth  int // of nested guarded built-in functions

	timeout time.Duration // of the running script
	late    atomic.Bool   // the script has exceeded its time
	timer   *time.Timer
	fired   chan struct{} // has one element when the timer has fired
	spoilt  bool          // an error left the runtime in an unknown state
}

// maxCallDepth bounds recursion. A call only uses stack of the host if it goes through a
// built-in function, so the bound can be generous.
const maxCallDepth = 512

func newIsolate(policies int) (*isolate, error) {
	i := &isolate{vm: goja.New(), functions: make([]goja.Callable, policies),
		source: rand.NewPCG(0, 0), fired: make(chan struct{}, 1)}
	i.random = rand.New(i.source)
	i.vm.SetMaxCallStackSize(maxCallDepth)
	i.vm.SetTimeSource(func() time.Time { return i.now })
	i.vm.SetRandSource(func() float64 { return i.random.Float64() })
	if err := i.harden(); err != nil {
		return nil, fmt.Errorf("the runtime cannot be prepared: %w", err)
	}
	i.prototype = i.vm.NewObject().Prototype()
	i.view = newEventView(i)
	i.about = newContextView(i)
	var err error
	if i.sight, err = newSight(i); err != nil {
		return nil, fmt.Errorf("the runtime cannot be prepared: %w", err)
	}
	i.timer = time.AfterFunc(time.Hour, func() {
		i.late.Store(true)
		i.vm.Interrupt(errTimeout)
		i.fired <- struct{}{}
	})
	i.timer.Stop()
	return i, nil
}

// misuse is an error that leaves the runtime intact.
type misuse struct{ error }

var (
	errTimeout   = errors.New("timeout")
	errNoPrelude = errors.New("the prelude is not a function")
)

// pristine undoes changes by scripts to the object of a view. Scripts cannot set its
// fields, but they can change its prototype.
func (i *isolate) pristine(o *goja.Object) *goja.Object {
	if o.Prototype() != i.prototype {
		if err := o.SetPrototype(i.prototype); err != nil {
			panic(err) // spoils the runtime; it cannot happen
		}
	}
	return o
}

// function returns the function of a policy.
func (i *isolate) function(p *compiled) (goja.Callable, error) {
	if f := i.functions[p.index]; f != nil {
		return f, nil
	}
	v, err := i.vm.RunProgram(p.program)
	if err != nil {
		return nil, err
	}
	f, ok := goja.AssertFunction(v)
	if !ok {
		return nil, errors.New("the script is not a function")
	}
	// The function object itself is frozen too, because it could keep data.
	if _, err := i.sealFunction(goja.Undefined(), v); err != nil {
		return nil, err
	}
	i.functions[p.index] = f
	return f, nil
}

// answer is the answer of a policy.
type answer struct {
	verdict *verdict // nil: no objection
	// memory is the state to remember, if remembers is set.
	memory    []byte
	remembers bool
}

// judge runs a policy on the subject of j.
func (i *isolate) judge(p *compiled, s *subject) (a answer, fault *ScriptError) {
	call := func(f goja.Callable, ctx goja.Value) (result goja.Value, err error) {
		i.view.pointAt(s)
		i.about.pointAt(p, s)
		if result, err = f(goja.Undefined(), i.pristine(i.view.object), ctx); err != nil {
			return nil, err
		}
		a.memory, a.remembers, err = i.about.memory()
		return result, err
	}
	read := func(result goja.Value) (fault *ScriptError) {
		a.verdict, fault = verdictOf(p, result)
		return fault
	}
	now, seed := s.fixed()
	if fault = i.run(p, now, seed, call, read); fault != nil {
		return answer{}, fault
	}
	return a, nil
}

// run calls the function of a script, with a timeout, a fixed time and seeded randomness,
// and reads the result.
func (i *isolate) run(p *compiled, now int64, seed uint64,
	call func(f goja.Callable, ctx goja.Value) (goja.Value, error), read func(goja.Value) *ScriptError,
) (fault *ScriptError) {
	defer func() {
		// A Go panic leaves the interpreter in an unknown state.
		if r := recover(); r != nil {
			i.timer.Stop()
			i.spoilt = true
			fault = p.fault(1, 1, fmt.Sprintf("the interpreter failed: %v", r), "")
			if stopped, ok := r.(*goja.InterruptedError); ok {
				fault = i.fault(p, stopped)
			}
		}
	}()
	i.now = time.Unix(0, now).UTC()
	i.source.Seed(seed, p.seed)
	i.about.pointAt(p, nil)
	i.depth, i.timeout = 0, p.Timeout
	i.late.Store(false)
	begin := time.Now()
	i.timer.Reset(p.Timeout)
	f, err := i.function(p)
	var result goja.Value
	if err == nil {
		result, err = call(f, i.pristine(i.about.object))
	}
	err = describeThrown(err)
	if !i.timer.Stop() {
		<-i.fired // the timer is firing: wait, or it would stop a later call
		i.vm.ClearInterrupt()
		i.spoilt = true
		if err == nil {
			err = errTimeout
		}
	}
	if err == nil && time.Since(begin) > p.Timeout {
		err = errTimeout // the timer is late, and matching may have stopped early
	}
	if err != nil {
		return i.fault(p, err)
	}
	return read(result)
}

// thrownError is an exception of a script, with its text.
type thrownError struct {
	*goja.Exception
	text string
}

// describeThrown turns an exception into text. That can call a function of the script, so the
// timer must run meanwhile.
func describeThrown(err error) error {
	var thrown *goja.Exception
	if !errors.As(err, &thrown) {
		return err
	}
	return &thrownError{thrown, clip(thrown.Value().String())}
}

// dropEvent releases the event; the next call reads its own.
func (i *isolate) dropEvent() {
	i.view.pointAt(nil)
	i.about.pointAt(nil, nil)
	i.sight.dropLarge()
}

// fault turns an error of the interpreter into an error with a place in the recipe.
func (i *isolate) fault(p *compiled, err error) *ScriptError {
	var thrown *thrownError
	var interrupted *goja.InterruptedError
	var overflow *goja.StackOverflowError
	var wrong misuse
	switch {
	case errors.As(err, &interrupted) && interrupted.Value() == any(errTooLong):
		i.spoilt = true
		return p.fault(1, 1, errTooLong.Error(), "")
	case errors.As(err, &interrupted), errors.Is(err, errTimeout):
		i.spoilt = true
		return p.fault(1, 1, fmt.Sprintf("it ran for longer than %v", p.Timeout), "")
	case errors.As(err, &overflow):
		i.spoilt = true
		return p.fault(1, 1, fmt.Sprintf("its calls nest more than %d deep", maxCallDepth), "")
	case errors.As(err, &wrong):
		return p.fault(1, 1, clip(err.Error()), "")
	case errors.As(err, &thrown):
		line, column := i.place(p, thrown.Stack())
		return p.fault(line, column, thrown.text, "")
	default:
		i.spoilt = true
		return p.fault(1, 1, clip(err.Error()), "")
	}
}

// place returns the innermost position in the policy's script.
func (i *isolate) place(p *compiled, stack []goja.StackFrame) (line, column int) {
	for k := range stack {
		if at := stack[k].Position(); stack[k].SrcName() == p.Name && at.Line > 0 {
			return at.Line, at.Column
		}
	}
	return 1, 1
}

// maxReason bounds the text of a verdict, in bytes, because it is logged.
const maxReason = 1 << 10

func clip(s string) string {
	if len(s) <= maxReason {
		return s
	}
	cut := maxReason
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
