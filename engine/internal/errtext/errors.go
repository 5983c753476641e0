package errtext

import "github.com/seed47132306/terrarium/abi"

var Closed = &abi.Error{Code: abi.Stopped, Message: "the engine is closed"}

// Gone returns the error for something that does not exist, or no longer
// exists.
func Gone(what, id string) *abi.Error {
	return &abi.Error{
		Code: abi.NotFound, Message: "there is no " + what + " " + id,
		Remedy: "status lists what exists", IDs: map[string]string{what: id},
	}
}

func Invalid(op, message, remedy string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, Op: op, Message: message, Remedy: remedy}
}
