package engine

import (
	"github.com/seed47132306/terrarium/abi"
)

var errClosed = &abi.Error{Code: abi.Stopped, Message: "the engine is closed"}

// gone says that something does not exist (any more).
func gone(what, id string) *abi.Error {
	return &abi.Error{
		Code: abi.NotFound, Message: "there is no " + what + " " + id,
		Remedy: "status lists what exists", IDs: map[string]string{what: id},
	}
}

func invalid(op, message, remedy string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, Op: op, Message: message, Remedy: remedy}
}
