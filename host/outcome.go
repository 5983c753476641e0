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
func (c *call) outcome(err error) *abi.Error {
	op := c.phase.String()
	var failure guestFailure
	switch {
	case c.end != nil:
		e := *c.end.err
		e.Op = op
		return &e
	case c.fault != nil:
		return &abi.Error{Code: abi.Internal, Op: op, Message: fmt.Sprintf("a hostcall failed: %v", c.fault)}
	case errors.As(err, &failure):
		return c.failed(op, int32(failure))
	default:
		return c.trapped(op, err)
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
func (c *call) trapped(op string, err error) *abi.Error {
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
	reason, stack := trapParts(err.Error())
	e.Message = "the guest trapped: " + reason
	if stack != "" {
		e.Message += " (in " + stack + ")"
	}
	if c.words != "" {
		e.Message += "; it said: " + printable(c.words)
	}
	if c.memory.Refused {
		// Most allocators trap without a message when memory runs out.
		e.Message += fmt.Sprintf("; it had been refused more memory: the limit memory is %d bytes", c.bounds.memory)
		e.Remedy = "raise the limit memory, or use less"
		e.IDs = map[string]string{"limit": "memory"}
	}
	return e
}

// Bounds on the part of a guest's stack shown in messages.
const (
	maxFrames    = 8
	maxFrameName = 64
)

// trapParts splits wazero's text into the reason and the function names of the
// stack, innermost first.
func trapParts(text string) (reason, stack string) {
	reason, trace, _ := strings.Cut(text, "\nwasm stack trace:\n")
	reason = strings.TrimPrefix(reason, "wasm error: ")
	if len(reason) > maxWords {
		reason = reason[:maxWords]
	}
	var names []string
	for line := range strings.Lines(trace) {
		name := frameName(line)
		if name == "" {
			continue
		}
		if len(names) == maxFrames {
			names = append(names, "…")
			break
		}
		names = append(names, name)
	}
	return printable(reason), strings.Join(names, " < ")
}

// frameName returns the function's name in a line such as
// "\t.main.run(i32,i32) i32".
func frameName(line string) string {
	name := strings.TrimSpace(line)
	signature := strings.LastIndexByte(name, '(')
	if signature > 0 && name[signature-1] == ' ' { // several results, in their own parentheses
		signature = strings.LastIndexByte(name[:signature], '(')
	}
	if signature <= 0 {
		return ""
	}
	name = strings.TrimPrefix(name[:signature], ".")
	if len(name) > maxFrameName {
		name = name[:maxFrameName] + "…"
	}
	return printable(name)
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
