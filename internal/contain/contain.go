// Package contain calls code that belongs to the program around terrarium, such as a capability or
// a connector. It is called in goroutines of the engine, where that program could not recover from
// a panic, and the process would end.
package contain

import (
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// longest bounds the text of a panic in an error, in bytes.
const longest = 1 << 10

// Call calls f, and returns its error. If f panics, the error has the code internal, and names what
// has panicked. So has an error that claims the code ok.
func Call(what string, f func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			err = &abi.Error{
				Code: abi.Internal, Message: fmt.Sprintf("%s panicked: %.*s", what, longest, fmt.Sprint(p)),
				Remedy: "report it to the author of the kind",
			}
		}
	}()
	err = f()
	returned = true
	if err != nil && abi.CodeOf(err) == abi.OK { // a caller that looks at the code would see success
		err = &abi.Error{Code: abi.Internal, Message: what + " failed: " + err.Error(), Remedy: "report it to the author of the kind"}
	}
	return err
}

// longestText bounds the text of an error, in bytes.
const longestText = 4 << 10

// Text returns the text of an error for a status or a log: at most 4 KiB of it, without bytes that
// are not UTF-8.
func Text(s string) string {
	short := strings.ToValidUTF8(s[:min(len(s), longestText)], "") // also without the part of a character at the end
	if len(s) > longestText {
		short += "…"
	}
	return short
}

// Nothing is the error for code that has returned neither a result nor an error.
func Nothing(what string) error {
	return &abi.Error{Code: abi.Internal, Message: what + " returned neither a result nor an error", Remedy: "report it to the author of the kind"}
}
