package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/tetratelabs/wazero/sys"
)

// guestFailure is a failure status that the guest itself returned.
type guestFailure int32

func (f guestFailure) Error() string { return fmt.Sprintf("status %d", int32(f)) }

// outcome returns the error for the end of a call.
func (i *Instance) outcome(err error) *abi.Error {
	c := &i.call
	op := c.phase.String()
	var failure guestFailure
	switch {
	case c.end != nil:
		e := *c.end.err
		e.Op = op
		if e.Code != abi.Stopped { // it was the guest's doing
			if stack := i.compiled.placeOf(err.Error(), e.Code); stack != "" {
				e.Message += " (in " + stack + ")"
			}
		}
		return &e
	case c.fault != nil:
		return &abi.Error{Code: abi.Internal, Op: op, Message: fmt.Sprintf("a hostcall failed: %v", c.fault)}
	case errors.As(err, &failure):
		return c.failed(op, int32(failure))
	default:
		return i.trapped(op, err)
	}
}

// failed returns the error for a failure status of the guest, with the guest's
// own text if it logged any.
func (c *call) failed(op string, status int32) *abi.Error {
	code := abi.CodeOfStatus(status)
	e := &abi.Error{Code: code, Op: op, Message: fmt.Sprintf("the guest returned %d (%s)", status, code)}
	switch text := c.errorText(); {
	case c.words != "":
		e.Message += ": " + printable(c.words)
	case text != "":
		e.Message += "; the last failed hostcall said: " + printable(text)
	}
	return e
}

// trapped returns the error for a trap, an exit, or an error of wazero while
// instantiating.
func (i *Instance) trapped(op string, err error) *abi.Error {
	c := &i.call
	var known *abi.Error
	if errors.As(err, &known) {
		return known
	}
	e := &abi.Error{Code: abi.Trapped, Op: op}
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		// This happens only if the host is closed while a guest runs.
		e.Code, e.Message, e.Err = abi.Stopped, "the instance was closed while it ran", err
		return e
	}
	text := err.Error()
	reason, _, _ := strings.Cut(text, stackTitle)
	reason = strings.TrimPrefix(reason, "wasm error: ")
	e.Message = "the guest trapped: " + printable(reason[:min(len(reason), maxWords)])
	if stack, _ := i.compiled.stackOf(text); stack != "" {
		e.Message += " (in " + stack + ")"
	}
	if c.words != "" {
		e.Message += "; it said: " + printable(c.words)
	}
	switch {
	case c.memory.NoRoom:
		e.Message += "; it had been refused more memory, because the process has too few addresses left"
		e.Remedy = "use less memory, or a machine with 64 bits"
	case c.memory.Refused:
		// Most allocators trap without a message when memory runs out.
		e.Message += fmt.Sprintf("; it had been refused more memory: the limit memory is %d bytes", c.bounds.memory)
		e.Remedy = "raise the limit memory, or use less"
		e.IDs = map[string]string{"limit": "memory"}
	}
	return e
}

// printable makes guest text fit for one line of a message.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if abi.Deceptive(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
