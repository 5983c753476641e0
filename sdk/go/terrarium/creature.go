package terrarium

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
)

// A Creature holds the functions of a module. Only Handle is required.
type Creature struct {
	// Init is called once for every instance, before the first delivery. It
	// may only read; use it to check the configuration. After an error the
	// host does not use the instance.
	Init func(*Turn) error
	// Handle is called for every delivery. It should return nil for a kind
	// that it does not know.
	Handle func(*Turn) error
	// Stop is called before an orderly close; a host need not call it. It may
	// only read.
	Stop func(*Turn)
}

var registered Creature

// Register makes c the creature of this module. Call it in an init function of
// package main; the last call counts.
func Register(c Creature) { registered = c }

// RunInit runs Init, if there is one, as the host's creature_init does. It
// returns the status: 0, or a negative code.
func (c Creature) RunInit(h Host) int32 {
	return NewTurn(h, 0, 0).init(&c)
}

// RunHandle runs Handle for one delivery of size bytes, as the host's
// creature_handle does. It returns the status: 0, or a negative code.
func (c Creature) RunHandle(h Host, kind Kind, size int32) int32 {
	return NewTurn(h, kind, size).handle(&c)
}

// RunStop runs Stop, if there is one.
func (c Creature) RunStop(h Host) {
	if c.Stop != nil {
		c.Stop(NewTurn(h, 0, 0))
	}
}

func (t *Turn) init(c *Creature) int32 {
	if c.Init == nil {
		return 0
	}
	return t.run(c.Init)
}

func (t *Turn) handle(c *Creature) int32 {
	if c.Handle == nil {
		return -int32(Unsupported)
	}
	return t.run(c.Handle)
}

// run calls a function of the creature and returns the status of the turn. A panic fails
// the turn: its text, and the place in the source, are logged.
func (t *Turn) run(f func(*Turn) error) (status int32) {
	defer func() {
		if v := recover(); v != nil {
			t.Log(LevelError, "panic: "+panicText(v)+panicPlace())
			status = -int32(Trapped)
		}
	}()
	if err := f(t); err != nil {
		return t.finish(err)
	}
	return 0
}

func panicText(v any) string {
	switch v := v.(type) {
	case error:
		return v.Error()
	case string:
		return v
	case interface{ String() string }:
		return v.String()
	}
	return "a value that is not a text"
}

// panicPlace returns the place of the innermost function, outside the Go runtime, that
// is on the stack of the panic.
func panicPlace() string {
	var callers [32]uintptr
	n := runtime.Callers(0, callers[:])
	panicked := false
	for frames := runtime.CallersFrames(callers[:n]); ; {
		frame, more := frames.Next()
		switch {
		case strings.HasPrefix(frame.Function, "runtime."):
			panicked = panicked || frame.Function == "runtime.gopanic"
		case panicked && frame.Line > 0:
			return " (at " + frame.File + ":" + strconv.Itoa(frame.Line) + ")"
		}
		if !more {
			return ""
		}
	}
}

// finish logs why a turn failed and returns its status. An error without a
// code of the contract has the code [Failed].
func (t *Turn) finish(err error) int32 {
	t.Log(LevelError, err.Error())
	var code Code
	if !errors.As(err, &code) || code <= 0 {
		code = Failed
	}
	return -int32(code)
}
