package journal

import (
	"reflect"
	"testing"
)

func TestRecycledRecordsAreEmpty(t *testing.T) {
	for range 100 { // the pool may drop what it gets
		r := NewRecord()
		if n := *r; len(n.Events)+len(n.Cursors)+len(n.Heads) > 0 || !isZeroBut(n, "Events", "Cursors", "Heads", "pooled") {
			t.Fatalf("a new record is %+v", n)
		}
		for _, ev := range r.Events[:cap(r.Events)] {
			if !reflect.DeepEqual(ev, Event{}) {
				t.Fatal("the memory of a new record refers to", ev)
			}
		}
		r.Events = append(r.Events, Event{Seq: 1, Payload: []byte("x")})
		r.Cursors = append(r.Cursors, CursorRow{Reader: "c"})
		r.Heads = append(r.Heads, HeadRow{Channel: "ch"})
		r.State, r.Meta, r.Drop.Wires = []StateRow{{Key: "k"}}, map[string]string{"k": "v"}, []WireID{"w"}
		r.Recycle()
	}
}

func TestOtherRecordsAreNotRecycled(t *testing.T) {
	r := &Record{Events: []Event{{Seq: 1}}, Meta: map[string]string{"k": "v"}}
	r.Recycle()
	if len(r.Events) != 1 || r.Events[0].Seq != 1 || r.Meta["k"] != "v" {
		t.Errorf("the record became %+v", r)
	}
}

func isZeroBut(r Record, fields ...string) bool {
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		name, skip := v.Type().Field(i).Name, false
		for _, f := range fields {
			skip = skip || f == name
		}
		if !skip && !v.Field(i).IsZero() {
			return false
		}
	}
	return true
}
