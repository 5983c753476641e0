package terrarium_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

// TestJSONAgreesWithTheLibrary compares the reader and the writer with encoding/json.
func TestJSONAgreesWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := rapid.MapOf(rapid.String(), rapid.Custom(func(t *rapid.T) any {
			switch rapid.IntRange(0, 4).Draw(t, "type") {
			case 0:
				return rapid.String().Draw(t, "text")
			case 1:
				return rapid.Int64().Draw(t, "number")
			case 2:
				return rapid.SliceOf(rapid.String()).Draw(t, "list")
			case 3:
				return map[string]any{"inner": []any{rapid.String().Draw(t, "deep"), true, nil, map[string]any{}}}
			}
			return nil
		})).Draw(t, "document")
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "indented") {
			if text, err = json.MarshalIndent(doc, "", "\t"); err != nil {
				t.Fatal(err)
			}
		}
		var want map[string]any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			compare(t, terrarium.JSON(text).Get(name), value)
		}
	})
}

func compare(t *rapid.T, got terrarium.JSON, want any) {
	switch want := want.(type) {
	case string:
		if got.Text() != want {
			t.Fatalf("%s is read as %q, want %q", got, got.Text(), want)
		}
	case []any:
		list := got.List()
		if len(list) != len(want) {
			t.Fatalf("%s has %d elements, want %d", got, len(list), len(want))
		}
		for i := range list {
			compare(t, list[i], want[i])
		}
	case map[string]any:
		for name, value := range want {
			compare(t, got.Get(name), value)
		}
	case nil:
		if string(got) != "null" {
			t.Fatalf("null is read as %s", got)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		written := terrarium.AppendJSON(nil, text)
		var got string
		if err := json.Unmarshal(written, &got); err != nil || utf8.ValidString(text) && got != text {
			t.Fatalf("%q is written as %s: %v", text, written, err)
		}
		if read := terrarium.JSON(written).Text(); read != got {
			t.Fatalf("%s is read as %q, want %q", written, read, got)
		}
	})
}

// FuzzJSON proves that no text makes the reader panic or run on.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":{"b":[1,"\u00e9\ud83d\ude00\ud83d",{}]}}`, `{"a`, `["\`, `{"a":"\u12`, `{{{`, `]`, `{"a":1 "b":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		j := terrarium.JSON(text)
		j.Get("a", "b").List()
		for _, v := range j.List() {
			v.Text()
			v.Whole()
		}
		j.Text()
	})
}
