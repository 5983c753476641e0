package connector_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
)

// windowSize is small, so that slots are used again soon.
const windowSize = 6

// windowModel is a naive model of a window: what each slot has, and a search over the slots.
type windowModel struct {
	slots   [windowSize]*windowUse
	session [windowSize]*windowUse // what is kept after a restart
	next    int
	arrived int // messages
}

// windowUse is a message with a key.
type windowUse struct {
	place int
	key   string
	sure  bool // that it was taken
}

// find returns the use of a key.
func (m *windowModel) find(key string) *windowUse {
	for _, u := range m.slots {
		if u != nil && u.key == key {
			return u
		}
	}
	return nil
}

// restart forgets everything that is not in the session, or too old.
func (m *windowModel) restart() {
	m.next, m.slots = 0, [windowSize]*windowUse{}
	for _, u := range m.session {
		if u != nil {
			m.next = max(m.next, u.place+1)
		}
	}
	for i, u := range m.session {
		if u != nil && u.place >= m.next-windowSize {
			m.slots[i] = &windowUse{u.place, u.key, true}
		}
	}
}

// windowOutcome is what becomes of a message that is sent.
type windowOutcome struct {
	arrives bool
	code    abi.Code // or 0
}

var windowOutcomes = []windowOutcome{
	{true, 0}, {true, 0}, {true, abi.UnknownOutcome}, {false, abi.UnknownOutcome}, {false, abi.Denied}, {false, abi.Unavailable},
}

// once handles a message, and returns whether it is a repetition, and whether it is sent.
func (m *windowModel) once(key string, o windowOutcome) (repeated, sent bool) {
	u := m.find(key)
	if u != nil && u.sure {
		return true, false
	}
	again := u != nil
	if u == nil {
		u = &windowUse{place: m.next, key: key}
		m.slots[m.next%windowSize] = u
		m.next++
	}
	slot := u.place % windowSize
	duplicate := m.session[slot] != nil && m.session[slot].place == u.place
	if o.arrives && !duplicate {
		m.session[slot] = u
		m.arrived++
	}
	switch {
	case o.code == 0:
		u.sure = true
	case o.code != abi.UnknownOutcome && !again:
		m.slots[slot] = nil
	}
	return duplicate && o.code == 0, true
}

// TestWindowModel compares a window with the model. Messages arrive, are refused or have an
// unknown outcome, and the window is made again from what the session has.
func TestWindowModel(t *testing.T) {
	keys := rapid.SampledFrom(strings.Split("abcdefghijkl", ""))
	rapid.Check(t, func(t *rapid.T) {
		p, m := connectortest.NewPort(), &windowModel{}
		var w *connector.Window
		for range rapid.IntRange(1, 8).Draw(t, "processes") {
			var err error
			if w, err = connector.NewWindowOf(p, windowSize); err != nil {
				t.Fatal(err)
			}
			m.restart()
			for range rapid.IntRange(0, 4*windowSize).Draw(t, "messages") {
				compareOnce(t, w, m, p, keys.Draw(t, "key"), rapid.SampledFrom(windowOutcomes).Draw(t, "outcome"))
			}
		}
	})
}

// compareOnce gives a message to a window and to the model.
func compareOnce(t *rapid.T, w *connector.Window, m *windowModel, p *connectortest.Port, key string, o windowOutcome) {
	sent := false
	repeated, err := w.Once(key, func(producer string, offset uint64) (duplicate bool, err error) {
		sent = true
		if o.arrives {
			r, err := p.Send(t.Context(), connector.Message{Payload: []byte(key), Producer: producer, Offset: offset})
			if err != nil {
				return false, err
			}
			duplicate = r.Duplicate()
		}
		if o.code != 0 {
			return duplicate, &abi.Error{Code: o.code}
		}
		return duplicate, nil
	})
	wantRepeated, wantSent := m.once(key, o)
	if repeated != wantRepeated || sent != wantSent || (err != nil) != (wantSent && o.code != 0) {
		t.Fatalf("%q: repeated %v, sent %v, error %v; want repeated %v, sent %v", key, repeated, sent, err, wantRepeated, wantSent)
	}
	if n := len(p.Seen().Sent); n != m.arrived {
		t.Fatalf("%q: %d messages have arrived, want %d", key, n, m.arrived)
	}
}
