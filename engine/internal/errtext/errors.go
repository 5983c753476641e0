package errtext

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
)

var Closed = &abi.Error{Code: abi.Stopped, Message: "the engine is closed"}

// Gone returns the error for something that does not exist, or no longer
// exists.
func Gone(what, id string) *abi.Error {
	return &abi.Error{
		Code: abi.NotFound, Message: "there is no " + what + " " + id,
		Remedy: listing[what], IDs: map[string]string{what: id},
	}
}

// listing tells what lists the things of a kind: an operation or a command, and the tool of
// a creature.
var listing = map[string]string{
	"creature": "status lists the creatures; a creature uses group_status",
	"channel":  "the operation status and the command session show list the channels; a creature uses group_status",
	"graph":    "status lists the graphs",
	"session":  "the operation sessions and the command session list show the sessions",
}

func Invalid(op, message, remedy string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, Op: op, Message: message, Remedy: remedy}
}

// NotRunning is the error for a call of a tool on behalf of a creature that does not run.
func NotRunning(id, name, condition string) *abi.Error {
	return &abi.Error{
		Code: abi.Stopped, Op: "tool", Message: "the creature " + name + " " + condition,
		Remedy: "start it first", IDs: map[string]string{"creature": id},
	}
}

// RecipeStopped is the error for what needs a creature to run, if its recipe has stopped because
// of a block stop_when.
func RecipeStopped(op, id, name, recipe, condition, reason string) *abi.Error {
	return &abi.Error{
		Code: abi.Stopped, Op: op, Message: "the creature " + name + " belongs to the recipe " + recipe + ", which has stopped, because " + condition + " holds: " + reason,
		Remedy: "change or remove the block in the recipe, and apply it again", IDs: map[string]string{"creature": id},
	}
}

// Paused is the error for a call of a tool in an engine in which nothing runs.
func Paused(id string) *abi.Error {
	return &abi.Error{
		Code: abi.Stopped, Op: "tool", Message: "the engine is paused, and no creature runs in it",
		Remedy: "resume the session and call the tool there", IDs: map[string]string{"creature": id},
	}
}

// StoppedWaiting is the error for a message from outside whose caller has stopped waiting
// while policies judged it: interrupted policies have failed, which may deny or allow
// anything.
func StoppedWaiting(ctx context.Context) *abi.Error {
	return &abi.Error{
		Code: abi.Unavailable, Op: "send", Message: "the caller stopped waiting while policies judged the message",
		Remedy: "send it again", Err: context.Cause(ctx),
	}
}
