package effects

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"pgregory.net/rapid"
)

// model describes with maps what a turn may do to state and timers.
type model struct {
	limits        abi.Limits
	saved, state  map[string]string
	writes        map[string]string // "=" and the value, or "-", by key
	before, timer map[string]int    // bytes by name
	changes       map[string]string // the payload after "=", or "-", by name
}

// stateSize is how much a state counts against its limit.
func stateSize(state map[string]string) (size int64) {
	for k, v := range state {
		size += int64(len(k) + len(v) + 32)
	}
	return size
}

// set returns the name of the limit that refuses a write.
func (m *model) set(key, value string) (limit string) {
	after := maps.Clone(m.state)
	after[key] = value
	_, again := m.writes[key]
	switch {
	case stateSize(after) > m.limits.State:
		return "state"
	case !again && len(m.writes) >= m.limits.StateWrites:
		return "state_writes"
	}
	m.state, m.writes[key] = after, "="+value
	return ""
}

func (m *model) remove(key string) (existed bool, limit string) {
	if _, ok := m.state[key]; !ok {
		return false, ""
	}
	if _, again := m.writes[key]; !again && len(m.writes) >= m.limits.StateWrites {
		return false, "state_writes"
	}
	delete(m.state, key)
	m.writes[key] = "-"
	return true, ""
}

func (m *model) setTimer(name, payload string) (limit string) {
	after := maps.Clone(m.timer)
	after[name] = len(name) + len(payload)
	bytes := 0
	for _, n := range after {
		bytes += n
	}
	switch {
	case len(after) > max(len(m.timer), m.limits.Timers):
		return "timers"
	case int64(bytes) > m.limits.TimerBytes:
		return "timer_bytes"
	}
	m.timer, m.changes[name] = after, "="+payload
	return ""
}

func (m *model) cancelTimer(name string) (existed bool) {
	if _, existed = m.timer[name]; !existed {
		return false
	}
	delete(m.timer, name)
	if _, persists := m.before[name]; persists {
		m.changes[name] = "-"
	} else {
		delete(m.changes, name)
	}
	return true
}

// keys lists the keys of the state with a prefix as StateList does.
func (m *model) keys(prefix string) string {
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m.state)) {
		if strings.HasPrefix(key, prefix) {
			out.WriteString(key + "\x00")
		}
	}
	return out.String()
}

// TestTurnsAgainstModel compares turns that write state and set timers with the model,
// and uses one Own for several turns.
func TestTurnsAgainstModel(t *testing.T) {
	key := rapid.SampledFrom([]string{"a", "ab", "abc", "b", "ba", "é"})
	value := rapid.StringOfN(rapid.SampledFrom([]rune("xyz")), 0, 12, -1)
	rapid.Check(t, func(r *rapid.T) {
		var own Own
		for range rapid.IntRange(1, 3).Draw(r, "turns") {
			m := &model{
				limits: abi.Limits{
					State: rapid.Int64Range(0, 200).Draw(r, "state"), StateWrites: rapid.IntRange(0, 4).Draw(r, "writes"),
					Timers: rapid.IntRange(0, 4).Draw(r, "timers"), TimerBytes: rapid.Int64Range(0, 40).Draw(r, "timer bytes"),
					StateKey: 8, StateValue: 64, Message: 64,
				},
				saved:  rapid.MapOfN(key, value, 0, 4).Draw(r, "saved"),
				before: rapid.MapOfN(key, rapid.IntRange(1, 20), 0, 4).Draw(r, "before"),
				writes: map[string]string{}, changes: map[string]string{},
			}
			m.state, m.timer = maps.Clone(m.saved), maps.Clone(m.before)
			saved := map[string][]byte{}
			for k, v := range m.saved {
				saved[k] = []byte(v)
			}
			state, size := StateOf(saved)
			own.Begin(&m.limits, nil, state, size, false)
			own.KnowTimers(m.before)
			for range rapid.IntRange(0, 12).Draw(r, "calls") {
				k, v := key.Draw(r, "key"), value.Draw(r, "value")
				switch rapid.IntRange(0, 3).Draw(r, "call") {
				case 0:
					refused(r, &own, own.StateSet([]byte(k), []byte(v)), m.set(k, v))
				case 1:
					existed, code := own.StateDelete([]byte(k))
					want, limit := m.remove(k)
					if refused(r, &own, code, limit); existed != want {
						r.Fatalf("deleting %q reports that it existed: %v", k, existed)
					}
				case 2:
					refused(r, &own, own.TimerSet([]byte(k), 1, 2, []byte(v)), m.setTimer(k, v))
				case 3:
					existed, code := own.TimerCancel([]byte(k))
					if refused(r, &own, code, ""); existed != m.cancelTimer(k) {
						r.Fatalf("cancelling %q reports that it existed: %v", k, existed)
					}
				}
			}
			m.compare(r, &own, key.Draw(r, "asked"))
			own.Reset()
		}
	})
}

// refused checks that a call was refused for a limit; "" means that it was not.
func refused(t *rapid.T, own *Own, code abi.Code, limit string) {
	t.Helper()
	if limit == "" && code != abi.OK || limit != "" && (code != abi.LimitExceeded || !strings.HasPrefix(own.LastError(), "the limit "+limit+" (")) {
		t.Fatalf("the code is %v (%s), and the limit %q", code, own.LastError(), limit)
	}
}

// compare compares what was collected, and what the turn sees, with the model.
func (m *model) compare(t *rapid.T, own *Own, asked string) {
	writes, changes := map[string]string{}, map[string]string{}
	for i := range own.Writes {
		w := &own.Writes[i]
		writes[w.Key] = strings.TrimPrefix(string(w.Encode()), w.Key+"\x00")
	}
	for _, x := range own.Timers {
		if changes[x.Name] = "=" + string(x.Payload); x.Cancel {
			changes[x.Name] = "-"
		}
	}
	if !maps.Equal(writes, m.writes) || !maps.Equal(changes, m.changes) {
		t.Fatalf("the writes are %v and the timers %v; want %v and %v", writes, changes, m.writes, m.changes)
	}
	if !slices.IsSortedFunc(own.Writes, func(a, b Write) int { return strings.Compare(a.Key, b.Key) }) ||
		!slices.IsSortedFunc(own.Timers, func(a, b Timer) int { return strings.Compare(a.Name, b.Name) }) {
		t.Fatalf("not sorted: %+v, %+v", own.Writes, own.Timers)
	}
	if want := stateSize(m.state); own.StateSize != want {
		t.Fatalf("the size is %d, want %d", own.StateSize, want)
	}
	want, exists := m.state[asked]
	if got, code := own.StateGet([]byte(asked)); string(got) != want || (code == abi.OK) != exists {
		t.Fatalf("%q is %q, %v; want %q, %v", asked, got, code, want, exists)
	}
	for _, prefix := range []string{"", asked} {
		var got strings.Builder
		own.StateList([]byte(prefix), func(keys []byte) { got.Write(keys) })
		if got.String() != m.keys(prefix) {
			t.Fatalf("the keys with %q are %q, want %q", prefix, got.String(), m.keys(prefix))
		}
	}
}

// TestSends compares the counting of sends with sums.
func TestSends(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limits := abi.Limits{Message: 8, Sends: rapid.IntRange(0, 6).Draw(r, "sends"), SendBytes: rapid.Int64Range(0, 30).Draw(r, "bytes")}
		var own Own
		own.Begin(&limits, nil, nil, 0, false)
		var count, sum int
		for i := range rapid.IntRange(0, 8).Draw(r, "calls") {
			n, size := rapid.IntRange(0, 3).Draw(r, "n"), rapid.IntRange(0, 9).Draw(r, "size")
			want := abi.OK
			switch {
			case size > 8:
				want = abi.TooLarge
			case count+n > limits.Sends || int64(sum+n*size) > limits.SendBytes:
				want = abi.LimitExceeded
			default:
				count, sum = count+n, sum+n*size
			}
			if code := own.Room(n, make([]byte, size), nil); code != want {
				r.Fatalf("call %d of %d times %d bytes: %v, want %v", i, n, size, code, want)
			}
		}
	})
}

// TestArena checks that what is kept stays as it was, and cannot grow into what follows.
func TestArena(t *testing.T) {
	var own Own
	var spans []Span
	for i := range 100 {
		spans = append(spans, own.Keep(fmt.Append(nil, "message ", i)))
	}
	for i, s := range spans {
		if got := append(own.Bytes(s), '!'); string(got) != fmt.Sprint("message ", i, "!") {
			t.Errorf("piece %d is %q", i, got)
		}
	}
}
