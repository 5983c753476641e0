package pack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// The creature js copies a script from here when it starts: its length in four bytes, the
// name of its file, NUL, and the script. The room is below the stack, which has not grown
// into it by then.
const (
	scriptAt   = 1024
	scriptRoom = 768 << 10
)

// MaxScriptBytes is the most that a script for [Script] may have, together with its name.
const MaxScriptBytes = scriptRoom - 5

const (
	dataCountSection = 12
	dataSection      = 11
)

// Script returns a copy of module, which is the module of builtin:js, with a script in it.
// The result runs this script and takes none from its configuration. name is the file name
// of the script, for error messages. The same input always gives the same bytes.
//
// The error has the code [abi.InvalidArgument] if module cannot hold a script or has one,
// or if the name has a NUL, and [abi.TooLarge] if the script has more than
// [MaxScriptBytes].
func Script(module []byte, name string, script []byte) ([]byte, error) {
	if strings.ContainsRune(name, 0) {
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "pack", Message: "the name of the script has a NUL", Remedy: "rename the file"}
	}
	if n := len(name) + len(script); n > MaxScriptBytes {
		return nil, &abi.Error{Code: abi.TooLarge, Op: "pack",
			Message: fmt.Sprintf("the script has %d bytes, and at most %d are allowed", n, MaxScriptBytes), Remedy: "remove what it does not need, or minify it"}
	}
	sections, err := split(module)
	if err != nil {
		return nil, err
	}
	content := binary.LittleEndian.AppendUint32(nil, uint32(len(name)+1+len(script)))
	content = append(append(append(content, name...), 0), script...)
	out := slices.Grow([]byte(preamble), len(module)+len(content)+32)
	found := false
	for _, s := range sections {
		switch s.whole[0] {
		case dataCountSection, dataSection:
			body, after, ok := counted(s.whole)
			if !ok {
				return nil, truncated(len(out))
			}
			if s.whole[0] == dataSection {
				if found = !bytes.Contains(after, address()); !found {
					return nil, cannotHold("the module has a script already")
				}
				after = append(slices.Clone(after), segment(content)...)
			}
			out = appendSection(out, s.whole[0], append(binary.AppendUvarint(nil, body+1), after...))
		default:
			out = append(out, s.whole...)
		}
	}
	if !found {
		return nil, cannotHold("the module cannot hold a script: it has no data")
	}
	return out, nil
}

func cannotHold(message string) error {
	return &abi.Error{Code: abi.InvalidArgument, Op: "pack", Message: message, Remedy: "use the module of builtin:js"}
}

// counted returns the number at the beginning of a section, and the rest.
func counted(section []byte) (count uint64, rest []byte, ok bool) {
	body, _, ok := prefixed(section[1:])
	if !ok {
		return 0, nil, false
	}
	count, width := binary.Uvarint(body)
	if width <= 0 {
		return 0, nil, false
	}
	return count, body[width:], true
}

// address begins an active segment at scriptAt: memory 0, i32.const, end.
func address() []byte { return []byte{0, 0x41, 0x80, 0x08, 0x0b} }

func segment(content []byte) []byte {
	out := binary.AppendUvarint(address(), uint64(len(content)))
	return append(out, content...)
}

func appendSection(out []byte, id byte, body []byte) []byte {
	out = append(out, id)
	out = binary.AppendUvarint(out, uint64(len(body)))
	return append(out, body...)
}
