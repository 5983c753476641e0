package engine

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
)

// unknownOutcome says of something that the engine has taken in that the caller
// could not be told what becomes of it: the store fails at present, or the caller or
// the engine stops waiting. It is no refusal, so repeating it may do it twice.
func unknownOutcome(op, message, remedy string, cause error) *abi.Error {
	return &abi.Error{Code: abi.UnknownOutcome, Op: op, Message: message, Remedy: remedy, Err: cause}
}

// notTakenIn says that a message from outside was refused because its caller stopped
// waiting for room. An error with a code says so itself.
func notTakenIn(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &abi.Error{
		Code: abi.Unavailable, Op: "send", Message: "the caller stopped waiting before the message was taken in",
		Remedy: "send it again", Err: context.Cause(ctx),
	}
}
