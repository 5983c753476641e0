package storemeta

import (
	"maps"
	"slices"
	"testing"
)

// TestMetaIsReadAsItIsWritten proves that joined metadata can be parsed again,
// with the first deployment first, and that an empty value means none.
func TestMetaIsReadAsItIsWritten(t *testing.T) {
	meta := map[string]string{
		"deployment": "m", "config_path": "m.hcl", "merge": "",
		"deployment/a": "a", "recipe/a": "{}", "deployment/gone": "", "policy p/m": "7",
	}
	m := Parse(meta)
	if !slices.Equal(m.Names, []string{"m", "a"}) {
		t.Fatalf("it has the deployments %q", m.Names)
	}
	written := map[string]string{"deployment": "m", "config_path": "m.hcl", "deployment/a": "a", "recipe/a": "{}"}
	if got := m.Join(); !maps.Equal(got, written) {
		t.Errorf("it is written as %q", got)
	}
	m.Add(Parse(map[string]string{"deployment": "a", "recipe": "another"})) // is known
	m.Add(Parse(map[string]string{"deployment": "b"}))
	m.Only(map[string]bool{"a": true, "b": true})
	if got, want := m.Join(), map[string]string{"deployment": "a", "recipe": "{}", "deployment/b": "b"}; !maps.Equal(got, want) {
		t.Errorf("without m and with b it is written as %q, want %q", got, want)
	}
	if got := Correction(map[string]string{"x": "1", "y": "2"}, map[string]string{"y": "3"}); !maps.Equal(got, map[string]string{"x": "", "y": "3"}) {
		t.Errorf("the correction is %q", got)
	}
}

// TestMemoryIsReadAsItIsWritten proves the same for policies with slashes in
// their names, and that invalid JSON is ignored.
func TestMemoryIsReadAsItIsWritten(t *testing.T) {
	meta := map[string]string{"deployment": "d", MemoryKey{"d", "gone"}.MetaKey(): ""}
	keys := []MemoryKey{{"d", "p"}, {"d", "p/a%2Fb"}, {"e/f", "p"}}
	for _, k := range keys {
		meta[k.MetaKey()] = `"of ` + k.Policy + `"`
	}
	rest, memory := MemoryOf(meta)
	if len(memory) != len(keys) || !maps.Equal(rest, map[string]string{"deployment": "d"}) {
		t.Errorf("it is %v beside %q", memory, rest)
	}
	for _, k := range keys {
		if cell := memory[k]; cell == nil || string(cell.Value) != `"of `+k.Policy+`"` {
			t.Errorf("of %v it has %v", k, cell)
		}
	}
}
