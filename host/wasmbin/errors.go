package wasmbin

import (
	"fmt"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
)

// noFunction is the function index of an error that is not about a function.
const noFunction = -1

// noOffset is the offset of an error that has no single place.
const noOffset = -1

// place is the location of an error in a module.
type place struct {
	offset   int
	function int
	relative bool // offset counts from the start of the function's instructions
}

// String is empty or starts with a space.
func (p place) String() string {
	var s string
	if p.function != noFunction {
		s = fmt.Sprintf(" in function %d", p.function)
	}
	if p.offset != noOffset {
		s += fmt.Sprintf(" at byte %#x", p.offset)
	}
	if p.relative {
		s += " of the body"
	}
	return s
}

func (p place) ids() map[string]string {
	ids := map[string]string{}
	if p.offset != noOffset {
		ids["offset"] = strconv.Itoa(p.offset)
	}
	if p.function != noFunction {
		ids["function"] = strconv.Itoa(p.function)
	}
	return ids
}

// fault is an error in the encoding of an instruction, before its function is
// known.
type fault struct {
	pos     int
	message string
	feature string // set if the instruction belongs to a later version
}

func (f *fault) error(p place) *abi.Error {
	if f.feature != "" {
		return unsupported(p, f.feature)
	}
	return malformed(p, f.message)
}

// malformed returns the error for a module that breaks the rules of the format
// or the rules of validation.
func malformed(p place, message string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, IDs: p.ids(),
		Message: fmt.Sprintf("the module is invalid%s: %s", p, message),
		Remedy:  "build or copy it again; wasm-validate checks it with another tool"}
}

// unsupported returns the error for a module that uses a feature beyond Wasm
// 2.0.
func unsupported(p place, feature string) *abi.Error {
	e := &abi.Error{Code: abi.Unsupported, IDs: p.ids(),
		Message: fmt.Sprintf("the module uses %s%s", feature, p),
		Remedy:  "build it for Wasm 2.0, with that feature turned off"}
	e.IDs["feature"] = feature
	return e
}

// tooLarge returns the error for a module that exceeds a limit. limit is the
// name of its field in Limits.
func tooLarge(p place, limit, what string, found, most uint64) *abi.Error {
	e := &abi.Error{Code: abi.TooLarge, IDs: p.ids(),
		Message: fmt.Sprintf("the module has %d %s%s; at most %d are allowed", found, what, p, most),
		Remedy:  "make it smaller; a program that embeds the host can raise wasmbin.Limits." + limit}
	e.IDs["limit"] = limit
	e.IDs["found"] = strconv.FormatUint(found, 10)
	e.IDs["most"] = strconv.FormatUint(most, 10)
	return e
}
