package abi

import "fmt"

// Code is a stable error code. One table serves the ABI, the group tools, the
// operations and the Go API. Code(0) is success. Hostcalls return the negative
// of the number.
type Code uint8

// The codes. Numbers and names never change and are never reused.
const (
	OK              Code = 0
	InvalidArgument Code = 1
	NotFound        Code = 2
	AlreadyExists   Code = 3
	Ambiguous       Code = 4
	NotConnected    Code = 5
	NotPrivileged   Code = 6
	Denied          Code = 7
	LimitExceeded   Code = 8
	Conflict        Code = 9
	Stopped         Code = 10
	Trapped         Code = 11
	OutOfFuel       Code = 12
	Deadline        Code = 13
	TooLarge        Code = 14
	Unsupported     Code = 15
	Storage         Code = 16
	Unavailable     Code = 17
	Internal        Code = 18
	UnknownOutcome  Code = 19
	Failed          Code = 20
)

// CodeInfo describes one error code.
type CodeInfo struct {
	Code Code
	Name string
	Doc  string
}

// Codes is the table of error codes in numeric order, without [OK].
var Codes = []CodeInfo{
	{InvalidArgument, "invalid_argument", "an argument is malformed, out of range or points outside memory"},
	{NotFound, "not_found", "nothing has that id, name or key"},
	{AlreadyExists, "already_exists", "the name or id is taken"},
	{Ambiguous, "ambiguous", "the name fits more than one thing"},
	{NotConnected, "not_connected", "no edge leads to the channel or the creature"},
	{NotPrivileged, "not_privileged", "the caller lacks the privilege"},
	{Denied, "denied", "a policy, a missing grant or the phase of the call forbids it"},
	{LimitExceeded, "limit", "a limit was reached; the message names it"},
	{Conflict, "conflict", "it conflicts with what exists, or with a change made at the same time"},
	{Stopped, "stopped", "the target or the engine is stopped"},
	{Trapped, "trapped", "the guest trapped"},
	{OutOfFuel, "out_of_fuel", "the guest used up the fuel of its turn"},
	{Deadline, "deadline", "the allowed time ran out"},
	{TooLarge, "too_large", "a message, value or module is larger than allowed"},
	{Unsupported, "unsupported", "this version or build does not have it"},
	{Storage, "storage", "a session store failed; the message names its path"},
	{Unavailable, "unavailable", "not possible at the moment; trying again may help"},
	{Internal, "internal", "a defect in the host or the engine"},
	{UnknownOutcome, "unknown_outcome", "accepted, but it is not known whether it will last, for example because the disk is full"},
	{Failed, "failed", "the creature failed the turn; its text says why"},
}

// Info returns the table entry of c; ok is false for a number that is not in
// the table, and for [OK].
func (c Code) Info() (info CodeInfo, ok bool) {
	if c == OK || int(c) > len(Codes) {
		return CodeInfo{}, false
	}
	return Codes[c-1], true
}

// String returns the stable name, for example "not_found".
func (c Code) String() string {
	if c == OK {
		return "ok"
	}
	if info, ok := c.Info(); ok {
		return info.Name
	}
	return fmt.Sprintf("code_%d", uint8(c))
}

// Status returns the hostcall result that stands for c: zero or negative.
func (c Code) Status() int32 { return -int32(c) }

// CodeOfStatus returns the code that a negative hostcall result stands for. It
// returns [OK] for zero and more, and [Trapped] for a number that is not in
// the table.
func CodeOfStatus(status int32) Code {
	if status >= 0 {
		return OK
	}
	if n := -int64(status); n <= int64(len(Codes)) {
		return Code(n)
	}
	return Trapped
}

// ParseCode returns the code with the given stable name.
func ParseCode(name string) (Code, bool) {
	for _, info := range Codes {
		if info.Name == name {
			return info.Code, true
		}
	}
	return OK, false
}
