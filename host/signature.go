package host

import (
	"bytes"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
)

// signature is the type of a function, in bytes of the binary format.
type signature struct{ params, results []api.ValueType }

// sig parses a signature in short form: i is i32, I is i64, and the results
// come after the colon.
func sig(text string) signature {
	params, results, _ := strings.Cut(text, ":")
	return signature{valueTypes(params), valueTypes(results)}
}

func valueTypes(text string) []api.ValueType {
	out := make([]api.ValueType, 0, len(text))
	for _, c := range text {
		if c == 'I' {
			out = append(out, api.ValueTypeI64)
		} else {
			out = append(out, api.ValueTypeI32)
		}
	}
	return out
}

func signatureOf(f *abi.Function) signature {
	s := signature{results: []api.ValueType{api.ValueType(f.Result)}}
	for _, p := range f.Params {
		s.params = append(s.params, api.ValueType(p.Type))
	}
	return s
}

func (s signature) equal(o signature) bool {
	return bytes.Equal(s.params, o.params) && bytes.Equal(s.results, o.results)
}

// maxShownTypes bounds a signature of a hostile module in a message.
const maxShownTypes = 16

// String returns "(i32, i64) -> i32".
func (s signature) String() string { return "(" + typeList(s.params) + ") -> " + resultList(s.results) }

func resultList(types []api.ValueType) string {
	if len(types) == 1 {
		return api.ValueTypeName(types[0])
	}
	return "(" + typeList(types) + ")"
}

func typeList(types []api.ValueType) string {
	var names []string
	for i, t := range types {
		if i == maxShownTypes {
			names = append(names, "…")
			break
		}
		names = append(names, api.ValueTypeName(t))
	}
	return strings.Join(names, ", ")
}
