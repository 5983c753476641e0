package errtext

import (
	"cmp"
	"errors"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// Refusal returns an error as a guest reads it: its whole text is the message, without
// the remedy, and clipped.
func Refusal(err error) *abi.Error {
	var e *abi.Error
	if !errors.As(err, &e) {
		return &abi.Error{Code: abi.CodeOf(err), Message: Clip(err.Error())}
	}
	text := cmp.Or(e.Message, e.Code.String())
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if err != error(e) { // the wrapping errors say where it happened
		text = err.Error()
	}
	if e.Remedy != "" {
		text = strings.Replace(text, "; "+e.Remedy, "", 1)
	}
	return &abi.Error{Code: e.Code, Message: Clip(text), Remedy: e.Remedy, IDs: e.IDs}
}
