package engine_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// order is one word of a payload, which says what a creature of the simulator does: a
// letter and a number.
type order struct {
	what byte
	n    int
}

// The orders. A payload is a name and orders, separated by spaces.
const (
	orderRelay  = 'h' // send on all channels, with the number reduced by one, unless it is 0
	orderFail   = 'x' // fail the first attempts, as many as the number says
	orderDie    = 'D' // always fail
	orderTimer  = 't' // set a timer, in milliseconds
	orderRepeat = 'T' // set a repeating timer, in milliseconds
	orderCancel = 'C' // cancel the repeating timer
	orderAsk    = 'a' // ask the creature with that number
	orderTell   = 'd' // send to the creature with that number
	orderMute   = 'q' // do not reply
	orderForget = 'f' // delete a state value
	orderOutput = 'O' // output, with the number reduced by one, unless it is 0
	orderEdit   = 'g' // edit the graph by tools
	orderGuard  = 'p' // a policy asks about what is relayed, if the number is 1
)

func ordersOf(payload string) (name string, out []order) {
	words := strings.Fields(payload)
	for i, w := range words {
		if i == 0 {
			name = w
			continue
		}
		if n, err := strconv.Atoi(w[1:]); err == nil {
			out = append(out, order{w[0], n})
		}
	}
	return name, out
}

// relayed is what a creature sends on for a payload, if anything.
func relayed(payload string) (string, bool) {
	name, orders := ordersOf(payload)
	for _, o := range orders {
		if o.what == orderRelay && o.n > 0 {
			next := fmt.Sprintf("%s h%d", name, o.n-1)
			if slices.Contains(orders, order{orderGuard, 1}) {
				next += " p0"
			}
			return next, true
		}
	}
	return "", false
}

// putOut is the output of a creature for a payload, if there is one.
func putOut(payload string) (string, bool) {
	name, orders := ordersOf(payload)
	for _, o := range orders {
		if o.what == orderOutput {
			if o.n == 0 {
				return name + "-out", true
			}
			return fmt.Sprintf("%s O%d", name, o.n-1), true
		}
	}
	return "", false
}

// absorb adds a delivery to a creature's digest of everything that it has handled.
func absorb(digest string, kind abi.Kind, payload string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %s", digest, kind, payload)
	return strconv.FormatUint(h.Sum64(), 36)
}

// guest is the only behaviour of the simulator's creatures.
func (s *simulation) guest(t abi.Turn, kind abi.Kind) error {
	s.interrupt()
	if kind == abi.KindStart {
		return nil
	}
	b, _ := t.Source(abi.SourcePayload)
	payload := string(b)
	n := 0
	if old, code := t.StateGet([]byte("n")); code == abi.OK {
		n, _ = strconv.Atoi(string(old))
	}
	old, _ := t.StateGet([]byte("digest"))
	digest := absorb(string(old), kind, payload)
	if err := codeErr(t, t.StateSet([]byte("n"), []byte(strconv.Itoa(n+1)))); err != nil {
		return err
	}
	if err := codeErr(t, t.StateSet([]byte("digest"), []byte(digest))); err != nil {
		return err
	}
	err := s.obey(t, kind, payload)
	s.interrupt()
	return err
}

func (s *simulation) obey(t abi.Turn, kind abi.Kind, payload string) error {
	name, orders := ordersOf(payload)
	if next, ok := relayed(payload); ok {
		if sent := t.Send(abi.AllChannels, []byte(next), nil); sent < 0 {
			return status(t, sent)
		}
	}
	mute := false
	for _, o := range orders {
		d := time.Duration(o.n) * time.Millisecond
		switch o.what {
		case orderTimer:
			t.TimerSet([]byte("once"), d, 0, []byte(name+"-timer h1"))
		case orderRepeat:
			t.TimerSet([]byte("again"), d, d, []byte(name+"-again"))
		case orderCancel:
			t.TimerCancel([]byte("again"))
		case orderAsk:
			t.Request(fmt.Appendf(nil, "c%d", o.n), []byte(name+"-asks q"+strconv.Itoa(o.n%3)), 5*time.Second, int64(o.n))
		case orderTell:
			t.SendTo(fmt.Appendf(nil, "c%d", o.n), []byte(name+"-told"))
		case orderForget:
			t.StateSet([]byte("brief"), []byte(name))
			if o.n > 0 {
				t.StateDelete([]byte("brief"))
			}
		case orderEdit:
			s.edit(t, name, o.n)
		case orderMute:
			mute = o.n == 1
		case orderOutput:
			out, _ := putOut(payload)
			t.Output([]byte(out))
		}
	}
	if kind == abi.KindRequest && !mute {
		if err := codeErr(t, t.Reply([]byte("re-"+name))); err != nil {
			return err
		}
	}
	for _, o := range orders {
		if o.what == orderDie || o.what == orderFail && attemptOf(t) <= o.n {
			return &abi.Error{Code: abi.Trapped, Message: "as told"}
		}
	}
	return nil
}

func attemptOf(t abi.Turn) int {
	b, _ := t.Source(abi.SourceDetail)
	var d struct{ Attempt int }
	if json.Unmarshal(b, &d) != nil {
		return 0
	}
	return d.Attempt
}
