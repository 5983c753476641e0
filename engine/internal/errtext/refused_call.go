package errtext

import (
	"fmt"

	"github.com/seed47132306/terrarium/abi"
)

// about is an error about one thing, which its id names.
func about(code abi.Code, op, kind, id, message, remedy string, cause error) *abi.Error {
	return &abi.Error{Code: code, Op: op, Message: message, Remedy: remedy, IDs: map[string]string{kind: id}, Err: cause}
}

// NotIdle is the error of a wait that has ended for another reason.
func NotIdle(cause error) error {
	return &abi.Error{
		Code: abi.Deadline, Op: "wait_idle", Message: "the engine did not become idle in time",
		Remedy: "wait longer; status shows which creatures are busy", Err: cause,
	}
}

// NoHistory is the error for the history of a graph without a store.
func NoHistory(graph string) error {
	return about(abi.Unavailable, "", "graph", graph, "the graph "+graph+" has no store, so it has no history", "run it with durability normal or full", nil)
}

// StillInTurn is the error of a change that has waited for a creature in vain.
func StillInTurn[T ~string](c T, cause error) error {
	return about(abi.Deadline, "apply", "creature", string(c), "a creature that the recipe changes is still in a turn", "wait longer, or lower the limit deadline of the creature", cause)
}

// StillUnconnected is the error of redelivering a message that still leads nowhere.
func StillUnconnected[T ~string](c T, message, remedy string) error {
	return about(abi.NotConnected, "redeliver", "creature", string(c), message, remedy, nil)
}

// NoCatchUp is the error of a subscription after a cursor without a session directory.
var NoCatchUp = &abi.Error{
	Code: abi.Unsupported, Op: "subscribe", Message: "the engine keeps no events from which the subscription could catch up",
	Remedy: "use a session directory, or leave out the field after",
}

// ReaderExists is the error for a second reader of a name.
func ReaderExists[T ~string](name, channel string, id T) error {
	return about(abi.AlreadyExists, "read", "channel", string(id), "there is a reader "+name+" on channel "+channel, "use another name", nil)
}

// ChangedMeanwhile is the error of replacing the module of a creature that was changed at the
// same time.
func ChangedMeanwhile[T ~string](c T) error {
	return about(abi.Conflict, "replace_module", "creature", string(c), "the settings of the creature were changed at the same time", "try again", nil)
}

// NoReply is the error of a request from outside whose deadline has passed.
func NoReply[T ~string](c T) error {
	return about(abi.Deadline, "request", "creature", string(c), "no reply came in time",
		"set a longer deadline; status shows whether the creature runs; the request may still be handled", nil)
}

// PartMissing is the error of a reader of a channel for messages that it cannot return.
func PartMissing[T ~string](channel T, missed error) error {
	return about(abi.Unavailable, "read", "channel", string(channel), "a part of the channel is missing", "call Next again: it returns the first message after the missing part", missed)
}

// WaitsTwice refuses a change that would log a message a second time.
func WaitsTwice[T ~string](op string, channel T, seq uint64, cause error) error {
	return about(abi.Unavailable, op, "channel", string(channel),
		fmt.Sprintf("message %d of channel %s waits both in a graph without a store and in a graph with a store that was split from it", seq, channel),
		"try again after it has been handled; start the listener if it is stopped", cause)
}

// Forgotten is the conflict of policies that have read state which is out of date.
var Forgotten = &abi.Error{
	Code: abi.Conflict, Op: "policy", Message: "the state that the policies have read has changed in the meantime", Remedy: "try again",
}

// Awaiting is the error for calls of a turn that waits for approval.
var Awaiting = &abi.Error{
	Code: abi.Conflict, Op: "tool", Message: "the turn waits for approval", Remedy: "end the turn; it will run again",
}

// GraphChanged is the error for calls of a turn whose graph has changed meanwhile.
var GraphChanged = &abi.Error{
	Code: abi.Conflict, Op: "tool", Message: "the graph has changed since the turn looked at it", Remedy: "end the turn; it will run again",
}
