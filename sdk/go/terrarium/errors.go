package terrarium

// Code is an error code of the contract. It is an error itself, so that
// callers can test errors.Is(err, terrarium.NotFound).
type Code int32

// Error returns the stable name, for example "not_found".
func (c Code) Error() string {
	if c >= 0 && int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "unknown"
}

// An Error has a code of the contract: a call that the host refused, or, without
// Op, a failure of the creature's own. The turn that returns it fails with the code.
type Error struct {
	Code Code
	Op   string // the call, for example "send"; empty for an author's error
	Text string // what happened and what to do
}

// Error returns "op: text (code)", or only the text of an author's error.
func (e *Error) Error() string {
	if e.Op == "" && e.Text != "" {
		return e.Text
	}
	if e.Text == "" {
		return e.Op + ": " + e.Code.Error()
	}
	return e.Op + ": " + e.Text + " (" + e.Code.Error() + ")"
}

// Unwrap returns the code, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Code }

// A Source is the number of something that a creature can read.
type Source int32

// A Kind says why a creature is called.
type Kind int32

// A Level is the level of a log line.
type Level int32

// A Feature numbers an optional part of the contract.
type Feature int32

// allChannels is the handle of every channel that the creature may send on.
const allChannels = -1
