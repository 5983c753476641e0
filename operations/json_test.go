package operations

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/engine/journal"
	"pgregory.net/rapid"
)

// Any bytes survive their JSON form, which is a string exactly for UTF-8.
func TestPayloadRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.OneOf(
			rapid.SliceOf(rapid.Byte()),
			rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
		).Draw(t, "raw")
		b, err := json.Marshal(Payload(raw))
		if err != nil {
			t.Fatal(err)
		}
		if utf8.Valid(raw) != (b[0] == '"') {
			t.Fatalf("%q is written as %s", raw, b)
		}
		var back Payload
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back, raw) {
			t.Fatalf("%q came back as %q, by way of %s", raw, back, b)
		}
	})
}

func TestPayloadJSON(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`""`, ""},
		{`"text"`, "text"},
		{`"\u00e9"`, "é"},
		{`{"base64":""}`, ""},
		{`{"base64":"/wA="}`, "\xff\x00"},
	} {
		var p Payload
		if err := json.Unmarshal([]byte(c.in), &p); err != nil || string(p) != c.want || p == nil {
			t.Errorf("%s is read as %#v, %v; want %q", c.in, p, err, c.want)
		}
	}
	for _, in := range []string{`null`, `7`, `true`, `[]`, `{}`, `{"base64":7}`, `{"base64":"%"}`, `{"base64":"AA==","more":1}`, `{"base64":null}`} {
		var p Payload
		if err := json.Unmarshal([]byte(in), &p); err == nil {
			t.Errorf("%s is read as %q", in, p)
		}
	}
	if b, err := json.Marshal(Payload("<&>")); err != nil || string(b) != `"\u003c\u0026\u003e"` && string(b) != `"<&>"` {
		t.Errorf("marks are written as %s, %v", b, err)
	}
}

func TestDurationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Duration(rapid.Int64Min(0).Draw(t, "ns"))
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back Duration
		if err := json.Unmarshal(b, &back); err != nil || back != d {
			t.Fatalf("%d came back as %d, by way of %s: %v", d, back, b, err)
		}
	})
}

func TestDurationJSON(t *testing.T) {
	for _, c := range []struct {
		in   string
		want time.Duration
	}{
		{`"200ms"`, 200 * time.Millisecond},
		{`"1h2m"`, 62 * time.Minute},
		{`0`, 0},
		{`2`, 2 * time.Second},
		{`0.25`, 250 * time.Millisecond},
		{`9e9`, 9e9 * time.Second},
	} {
		var d Duration
		if err := json.Unmarshal([]byte(c.in), &d); err != nil || time.Duration(d) != c.want {
			t.Errorf("%s is read as %v, %v; want %v", c.in, time.Duration(d), err, c.want)
		}
	}
	for _, in := range []string{`"soon"`, `"-1s"`, `-1`, `1e10`, `1e300`, `""`, `"5"`, `{}`, `[]`, `true`} {
		var d Duration
		if err := json.Unmarshal([]byte(in), &d); err == nil {
			t.Errorf("%s is read as %v", in, time.Duration(d))
		}
	}
}

// What creatures write is never taken for JSON, whatever the kind of the message.
func TestEventsOfMessagesHaveTextPayloads(t *testing.T) {
	seen := 0
	for _, kind := range journal.EventKinds() {
		if !kind.IsMessage() && kind != journal.EventOutput {
			continue
		}
		seen++
		for payload, want := range map[string]string{
			"factor 7": `"factor 7"`, `{"a": 1}`: `"{\"a\": 1}"`, "": `""`, "\xff": `{"base64":"/w=="}`,
		} {
			line, err := json.Marshal(NewEventRecord(&journal.Event{Kind: kind, Payload: []byte(payload)}))
			var record struct{ Payload json.RawMessage }
			if err == nil {
				err = json.Unmarshal(line, &record)
			}
			if err != nil || string(record.Payload) != want {
				t.Errorf("%v: %q is written as %s (%v), want %s", kind, payload, record.Payload, err, want)
			}
		}
	}
	if seen < 7 {
		t.Errorf("there are %d kinds that carry what creatures write", seen)
	}
}
