package host

import (
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/lines"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// Bounds on the part of a guest's stack shown in messages.
const (
	maxFrames    = 8
	maxFrameName = 64
)

// stackTitle precedes the stack in wazero's error text.
const stackTitle = "\nwasm stack trace:\n"

// stackOf returns the stack of wazero's error text for a message, innermost
// first; hasLines is false if it has no lines of source.
func (c *compiled) stackOf(text string) (stack string, hasLines bool) {
	trace := traceOf(text)
	frames, hasLines := c.framesOf(trace)
	if !hasLines {
		names := make([]string, len(trace))
		for i := range trace {
			names[i] = printable(clipped(trace[i].name))
		}
		return list(names), false
	}
	return list(folded(frames)), true
}

// placeOf returns the stack of a guest that the host has ended with a code, or "" if the
// stack shows nothing. For a module without lines, it returns names only if a limit ended the
// guest: other errors already name their place.
func (c *compiled) placeOf(text string, code abi.Code) string {
	stack, hasLines := c.stackOf(text)
	switch {
	case hasLines:
		return stack
	case code != abi.OutOfFuel && code != abi.Deadline && code != abi.LimitExceeded:
		return ""
	}
	var names []string
	for _, t := range traceOf(text) {
		if strings.HasPrefix(t.name, "$") { // the index of a function without a name
			return ""
		}
		if !strings.HasPrefix(t.name, meter.ImportModule+".") { // the host's own
			names = append(names, printable(clipped(t.name)))
		}
	}
	return list(names)
}

// folded returns the frames of the author. Foreign ones between them become one
// mark; those before them say how the language ended the guest, which the
// message says better.
func folded(frames []lines.Frame) (out []string) {
	skipped := false
	for _, f := range frames {
		if f.Foreign {
			skipped = len(out) > 0
			continue
		}
		if skipped {
			out, skipped = append(out, "…"), false
		}
		out = append(out, frameText(f))
	}
	return out
}

// frameText returns a frame as text.
func frameText(f lines.Frame) string {
	text := printable(clipped(f.Function))
	if f.Line == 0 {
		return text
	}
	text += " at " + printable(f.File) + ":" + strconv.Itoa(f.Line)
	if f.Column > 0 {
		text += ":" + strconv.Itoa(f.Column)
	}
	return text
}

func clipped(name string) string {
	if len(name) > maxFrameName {
		return name[:maxFrameName] + "…"
	}
	return name
}

func list(frames []string) string {
	if len(frames) > maxFrames {
		frames = append(frames[:maxFrames:maxFrames], "…")
	}
	return strings.Join(frames, " < ")
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
	return strings.TrimPrefix(name[:signature], ".")
}
