package pack_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/abi/pack"
)

// withData is a module with a memory, a data count and one data segment, "x" at 8.
const withData = empty + "\x05\x03\x01\x00\x11" + "\x0c\x01\x01" + "\x0b\x07\x01\x00\x41\x08\x0b\x01x"

// Any script survives: it is in the last data segment, and all other sections are as
// they were.
func TestScriptIsInTheModule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		script := rapid.SliceOf(rapid.Byte()).Draw(t, "script")
		name := rapid.StringMatching(`[^\x00]{0,20}`).Draw(t, "name")
		packed, err := pack.Script([]byte(withData), name, script)
		if err != nil {
			t.Fatal(err)
		}
		content := binary.LittleEndian.AppendUint32(nil, uint32(len(name)+1+len(script)))
		content = append(append(content, name...), 0)
		content = append(content, script...)
		body := []byte("\x02\x00\x41\x08\x0b\x01x\x00\x41\x80\x08\x0b")
		body = append(binary.AppendUvarint(body, uint64(len(content))), content...)
		want := append(binary.AppendUvarint([]byte(empty+"\x05\x03\x01\x00\x11\x0c\x01\x02\x0b"), uint64(len(body))), body...)
		if !bytes.Equal(packed, want) {
			t.Fatalf("%q\nwant\n%q", packed, want)
		}
	})
}

func TestScriptsAreRefused(t *testing.T) {
	once, err := pack.Script([]byte(withData), "a.js", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, module, name, script, want string
		code                             abi.Code
	}{
		{"no module", "(module)", "a.js", "", "not a core WebAssembly module", abi.InvalidArgument},
		{"no data", empty, "a.js", "", "cannot hold a script: it has no data; use the module of builtin:js", abi.InvalidArgument},
		{"a second script", string(once), "a.js", "", "has a script already", abi.InvalidArgument},
		{"a name with NUL", withData, "a\x00.js", "", "the name of the script has a NUL", abi.InvalidArgument},
		{"data without a count", empty + "\x0b\x00", "a.js", "", "truncated", abi.InvalidArgument},
		{"too large", withData, "a.js", strings.Repeat(" ", pack.MaxScriptBytes-3), "at most 786427 are allowed", abi.TooLarge},
	} {
		_, err := pack.Script([]byte(c.module), c.name, []byte(c.script))
		if abi.CodeOf(err) != c.code || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want the code %v and %q", c.what, err, c.code, c.want)
		}
	}
	if _, err := pack.Script([]byte(withData), "a.js", bytes.Repeat([]byte(" "), pack.MaxScriptBytes-4)); err != nil {
		t.Errorf("the largest script: %v", err)
	}
}
