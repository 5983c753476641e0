package tools

import (
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

func TestNamesThatStandTwiceAreRefused(t *testing.T) {
	for text, fits := range map[string]bool{
		`{}`: true, `[]`: true, `1`: true, `"a"`: true, ` {"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]} `: true, `["a","a"]`: true, `{"a":"a","b":"a"}`: true,
		`{"a":"{\"x\":1,\"x\":2}"}`: true, `{"a":["b","b"],"b":1}`: true,
		`{"a":1,"a":2}`: false, `{"a":1,"b":{"x":{},"x":[]}}`: false, `[[{"a":1,"a":1}]]`: false, `{"a":1,"\u0061":2}`: false, `{"a":1,"A":2}`: false,
		`{"k":1,"\u212a":2}`: false, `{"s":1,"\u017f":2}`: false, `{"":1,"":2}`: false, `{"a":[1,{"b":2}],"a":2}`: false, `{"a\"":1,"a\"":2}`: false,
		`{"a":1,}`: false, ``: false, `{"a"`: false, `{} {}`: false,
		strings.Repeat("[", 1001) + strings.Repeat("]", 1001): false,
	} {
		err := CheckJSON([]byte(text))
		if (err == nil) != fits || err != nil && abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

func FuzzCheckJSON(f *testing.F) {
	for _, text := range []string{`{"a":1,"a":2}`, `{"a":{"b":"\\"},"c":"\""}`, `[{"a":[]}]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { _ = CheckJSON(text) })
}
