package journal

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

// The event of a payload that cannot be encoded names the error.
func TestJSONNamesWhatItCannotEncode(t *testing.T) {
	var got struct{ Unencodable string }
	if err := json.Unmarshal(JSON(func() {}), &got); err != nil || !strings.Contains(got.Unencodable, "func()") {
		t.Errorf("the payload is %+v, %v", got, err)
	}
	if got := string(JSON(LaggedPayload{Missed: 2})); !strings.Contains(got, "2") {
		t.Errorf("a payload is %s", got)
	}
}

// TestTurnEndedIsEncodedAsItsStruct compares the encoding by hand with that of the struct,
// for every field by itself and all together.
func TestTurnEndedIsEncodedAsItsStruct(t *testing.T) {
	all := TurnEndedPayload{Kind: "graph_changed", Sends: 1, Writes: 20, Tools: 3, Fuel: math.MaxInt64, Awareness: math.MaxUint64}
	cases := []TurnEndedPayload{{}, all, {Kind: "message", Fuel: -1}, {Kind: "kind 9\n\"<"}, {Kind: "start", Notes: &TurnNotes{Alias: "in", Time: 5}}}
	for i := range reflect.TypeFor[TurnEndedPayload]().NumField() {
		var one TurnEndedPayload
		field := reflect.ValueOf(&one).Elem().Field(i)
		switch from := reflect.ValueOf(all).Field(i); {
		case !from.IsZero():
			field.Set(from)
		case field.Kind() == reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		default:
			t.Fatalf("the field %s has no value in this test", reflect.TypeFor[TurnEndedPayload]().Field(i).Name)
		}
		cases = append(cases, one)
	}
	for _, reply := range []string{"", "plain ~", `"`, `\`, "<&>", "\n", "\x7f", "ü", "\u2028", "\xff", strings.Repeat("long", 100)} {
		noted := NotedBytes(reply)
		cases = append(cases, TurnEndedPayload{Kind: "request", Fuel: 7, Notes: &TurnNotes{Reply: &noted}})
	}
	one, noted := []any{&Setting{}, "x", int64(1), EventID{Seq: 1}, []NotedCall{{}}, []NotedSend{{}}, []int64{1}, []NotedTimer{{}}, []ReachNote{{Capability: "http.alerts"}, {Code: "denied", Error: "\"no\"\n"}}}, NotedBytes("yes")
	for i := range reflect.TypeFor[TurnNotes]().NumField() {
		n := TurnNotes{Reply: &noted} // and one more
		field := reflect.ValueOf(&n).Elem().Field(i)
		for _, v := range one {
			if v := reflect.ValueOf(v); v.Type() == field.Type() {
				field.Set(v)
			}
		}
		if field.IsZero() {
			t.Fatalf("the note %s has no value in this test", reflect.TypeFor[TurnNotes]().Field(i).Name)
		}
		cases = append(cases, TurnEndedPayload{Kind: "request", Notes: &n})
	}
	for _, c := range cases {
		want, err := json.Marshal(c)
		if got := c.Encode(); err != nil || string(got) != string(want) {
			t.Errorf("encoded as %s, not %s, %v", got, want, err)
		}
	}
}
