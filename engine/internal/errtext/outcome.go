package errtext

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// UnknownOutcome is the error for something that the engine has accepted but whose
// outcome the caller cannot get: the store fails at present, or the caller or the engine
// stops waiting. It is not a refusal, so a repetition may do it twice.
func UnknownOutcome(op, message, remedy string, cause error) *abi.Error {
	return &abi.Error{Code: abi.UnknownOutcome, Op: op, Message: message, Remedy: remedy, Err: cause}
}

// MayBeLost is the unknown outcome of a message from outside. It says how to repeat the message
// without sending it twice.
func MayBeLost[T ~string](channel T, message string, repeatable bool, cause error) error {
	remedy := "wait again, or look for the message in the history before sending it again; with a producer and an offset, it can be sent again without being sent twice"
	if repeatable {
		remedy = "send it again with the same producer and offset; it is not sent twice then"
	}
	err := UnknownOutcome("send", "the message was accepted, but may be lost", remedy, cause)
	if channel != "" {
		err = err.With("channel", string(channel))
	}
	if message != "" {
		err = err.With("message", message)
	}
	return err
}

// NotTakenIn is the error for a message from outside that was refused because its caller
// stopped waiting for room. An error that has a code is returned as it is.
func NotTakenIn(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &abi.Error{
		Code: abi.Unavailable, Op: "send", Message: "the caller stopped waiting before the message was accepted",
		Remedy: "send it again", Err: context.Cause(ctx),
	}
}

// StorageFailed converts an error of the storage to an error of the operation.
func StorageFailed(op string, err error) error {
	if code := abi.CodeOf(err); code != abi.Internal {
		return err
	}
	return &abi.Error{
		Code: abi.Storage, Op: op, Message: "the session stores could not be changed; the operation had no effect",
		Remedy: "fix the cause, then try the operation again", Err: err,
	}
}

// WithLog adds the last line that a guest has logged to an error, unless it has it. An
// error is one line, so a text of several lines is compared without their breaks.
func WithLog(err error, last string) error {
	if strings.Contains(oneLine(err.Error()), oneLine(last)) {
		return err
	}
	said := fmt.Sprintf(" (it logged: %s)", Clip(last))
	if e, ok := err.(*abi.Error); ok && e.Message != "" {
		worded := *e
		worded.Message += said
		return &worded
	}
	return fmt.Errorf("%w%s", err, said)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
