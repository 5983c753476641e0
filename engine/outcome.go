package engine

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
)

// unknownOutcome is the error for something that the engine has accepted but whose
// outcome the caller cannot get: the store fails at present, or the caller or the engine
// stops waiting. It is not a refusal, so a repetition may do it twice.
func unknownOutcome(op, message, remedy string, cause error) *abi.Error {
	return &abi.Error{Code: abi.UnknownOutcome, Op: op, Message: message, Remedy: remedy, Err: cause}
}

// notTakenIn is the error for a message from outside that was refused because its caller
// stopped waiting for room. An error that has a code is returned as it is.
func notTakenIn(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &abi.Error{
		Code: abi.Unavailable, Op: "send", Message: "the caller stopped waiting before the message was accepted",
		Remedy: "send it again", Err: context.Cause(ctx),
	}
}
