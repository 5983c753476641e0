package abi

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// Error is the one error type of the project. Code is stable and meant for
// programs; Message says what happened and Remedy what to do about it.
//
// errors.Is(err, &Error{Code: c}) is true for every error with code c, however
// deeply it is wrapped; see also [CodeOf].
type Error struct {
	Code    Code
	Op      string            // the operation that failed, for example "connect"; may be empty
	Message string            // one clause, lower case, without a full stop
	Remedy  string            // what the caller can do; may be empty
	IDs     map[string]string // the ids concerned, by kind: "creature", "channel", "graph", "path", ...
	Err     error             // the cause; may be nil
}

// Error returns "op: message (ids): cause; remedy".
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	if e.Message != "" {
		b.WriteString(e.Message)
	} else {
		b.WriteString(e.Code.String())
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	if e.Remedy != "" {
		b.WriteString("; ")
		b.WriteString(e.Remedy)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error with the same code and no message: a
// pattern rather than another occurrence.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// With returns a copy of e with an id added.
func (e *Error) With(what, id string) *Error {
	c := *e
	c.IDs = maps.Clone(e.IDs)
	if c.IDs == nil {
		c.IDs = map[string]string{}
	}
	c.IDs[what] = id
	return &c
}

// IDList returns the ids as "what=id", sorted.
func (e *Error) IDList() []string {
	out := make([]string, 0, len(e.IDs))
	for k, v := range e.IDs {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

// CodeOf returns the code of the first *Error in err's chain, [OK] for nil and
// [Internal] for an error of another type.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}
