package journal

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// Exactly the events whose payload has an attribution get one, and a name cannot add other
// members to the payload.
func TestAttribute(t *testing.T) {
	a := AttributionOf(Attribute(context.Background(), Attribution{Call: "connect", By: `ann","via":"socket` + "\xff\n", Via: "token", Creature: "c"}))
	encoded := a.Encode()
	for k := EventKind(0); k < 255; k++ {
		payload := PayloadType(k)
		ev := Event{Kind: k, Payload: []byte(`{"name":"x"}`)}
		ev.Attribute(encoded)
		has := false
		if payload != nil {
			_, has = payload.FieldByName("Attribution")
		}
		if !has {
			if string(ev.Payload) != `{"name":"x"}` {
				t.Errorf("%v: %s", k, ev.Payload)
			}
			continue
		}
		var p struct {
			Name string
			Attribution
		}
		if err := json.Unmarshal(ev.Payload, &p); err != nil {
			t.Fatalf("%v: %s: %v", k, ev.Payload, err)
		}
		want := a
		want.By = `ann","via":"socket` + "\ufffd\n"
		if p.Name != "x" || p.Attribution != want {
			t.Errorf("%v: %s", k, ev.Payload)
		}
	}
}

// Without a caller, an event stays as it is. A long name is cut between two characters.
func TestAttributionIsBounded(t *testing.T) {
	none := AttributionOf(context.Background())
	ev := Event{Kind: EventTopologyChanged, Payload: []byte(`{"kind":"none"}`)}
	ev.Attribute(none.Encode())
	if string(ev.Payload) != `{"kind":"none"}` {
		t.Errorf("%s", ev.Payload)
	}
	long := Attribution{Call: "x", By: "a" + strings.Repeat("é", MaxApprovalText), Via: "token"}
	got := AttributionOf(Attribute(context.Background(), long))
	if want := "a" + strings.Repeat("é", (MaxApprovalText-1)/2); got.By != want || !reflect.DeepEqual(got, Attribution{Call: "x", By: want, Via: "token"}) {
		t.Errorf("a name of %d bytes", len(got.By))
	}
}
