package engine

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/specs"
	"pgregory.net/rapid"
)

// newTestTurn is a turn of a creature that is in no graph.
func newTestTurn(limits abi.Limits) *turn {
	c := &creature{id: "c", settings: settings{limits: specs.Limits(limits)}, memory: memory{state: &effects.State{}}, running: running{handles: &handles{index: map[string]int32{}}}}
	c.wiring.Store(&wiring{})
	t := &turn{}
	t.begin(context.Background(), c, delivery{msg: bootMessage}, abi.KindMessage, false)
	return t
}

// The state that a turn writes equals the contents of a map, listed in order.
func TestStateOfATurnIsAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		turn := newTestTurn(abi.Limits{})
		key := rapid.StringMatching(`[ab]{1,3}`)
		model := map[string]string{}
		for _, k := range rapid.SliceOf(key).Draw(rt, "saved") {
			model[k] = "saved"
			turn.c.state.Set(k, []byte("saved"))
			turn.StateSize = sizeOf(model)
		}
		for range rapid.IntRange(0, 30).Draw(rt, "writes") {
			k := key.Draw(rt, "key")
			if rapid.Bool().Draw(rt, "set") {
				v := rapid.StringN(0, 5, -1).Draw(rt, "value")
				if code := turn.StateSet([]byte(k), []byte(v)); code != abi.OK {
					rt.Fatal(turn.LastError())
				}
				model[k] = v
			} else {
				_, there := model[k]
				if existed, code := turn.StateDelete([]byte(k)); code != abi.OK || existed != there {
					rt.Fatalf("deleting %s: %v, %v; want %v", k, existed, code, there)
				}
				delete(model, k)
			}
			if turn.StateSize != sizeOf(model) {
				rt.Fatalf("the state has %d bytes, want %d", turn.StateSize, sizeOf(model))
			}
			for k, want := range model {
				if v, code := turn.StateGet([]byte(k)); code != abi.OK || string(v) != want {
					rt.Fatalf("%s is %q, %v; want %q", k, v, code, want)
				}
			}
			prefix := rapid.SampledFrom([]string{"", "a", "ab", "b", "bb"}).Draw(rt, "prefix")
			var want []byte
			for _, k := range slices.Sorted(maps.Keys(model)) {
				if strings.HasPrefix(k, prefix) {
					want = append(append(want, k...), 0)
				}
			}
			got, code := keysOf(turn, prefix)
			if code != abi.OK || !bytes.Equal(got, want) {
				rt.Fatalf("keys with %q: %q, %v; want %q", prefix, got, code, want)
			}
		}
	})
}

// keysOf is what StateList returns.
func keysOf(t *turn, prefix string) (keys []byte, code abi.Code) {
	code = t.StateList([]byte(prefix), func(page []byte) { keys = append(keys, page...) })
	return keys, code
}

// A long list comes in pages, each of which is small.
func TestStateListComesInPages(t *testing.T) {
	turn := newTestTurn(abi.Limits{})
	want := 0
	for i := range 20_000 {
		key := fmt.Sprintf("key %05d", i)
		turn.c.state.Set(key, nil)
		want += len(key) + 1
	}
	got, pages := 0, 0
	turn.StateList(nil, func(page []byte) {
		pages++
		got += len(page)
		if len(page) > effects.ListPage+len("key 00000\x00") || page[len(page)-1] != 0 {
			t.Errorf("a page has %d bytes and ends with %q", len(page), page[len(page)-1])
		}
	})
	if got != want || pages != (want+effects.ListPage-1)/effects.ListPage {
		t.Errorf("%d bytes in %d pages, want %d bytes", got, pages, want)
	}
}

func sizeOf(m map[string]string) (n int64) {
	for k, v := range m {
		n += effects.Cost(len(k), len(v))
	}
	return n
}

// However often a guest repeats an action, a turn holds no more than is allowed.
func TestRepetitionCostsNothing(t *testing.T) {
	const rounds = 10_000
	big := make([]byte, 64<<10)
	for name, c := range map[string]struct {
		do   func(*turn, int) abi.Code
		held func(*turn) int
		most int
	}{
		"state":  {func(t *turn, _ int) abi.Code { return t.StateSet([]byte("k"), big) }, func(t *turn) int { return len(t.Writes) }, 1},
		"timers": {func(t *turn, _ int) abi.Code { return t.TimerSet([]byte("k"), 1, 0, big) }, func(t *turn) int { return len(t.Timers) }, 1},
		"timers that come and go": {func(t *turn, i int) abi.Code {
			name := fmt.Append(nil, i)
			if code := t.TimerSet(name, 1, 0, big); code != abi.OK {
				return code
			}
			_, code := t.TimerCancel(name)
			return code
		}, func(t *turn) int { return len(t.Timers) }, 0},
		"output between sends": {func(t *turn, i int) abi.Code {
			if i == 0 {
				return t.Output(big)
			}
			t.Keep([]byte("x"))
			return t.Output(nil)
		}, func(t *turn) int { return cap(t.Put) + cap(t.Arena) }, 4 * len(big)},
	} {
		turn := newTestTurn(abi.Limits{})
		for i := range rounds {
			if code := c.do(turn, i); code != abi.OK {
				t.Fatalf("%s, round %d: %v: %s", name, i, code, turn.LastError())
			}
		}
		if got := c.held(turn); got > c.most {
			t.Errorf("%s: the turn holds %d, want %d at most", name, got, c.most)
		}
	}
}

// Whatever name a guest uses, the text of the error is short and names the limit.
func TestErrorsOfATurnAreShortAndNameLimits(t *testing.T) {
	huge := bytes.Repeat([]byte("x"), 32<<20)
	small := abi.Limits{State: 80, Requests: 1, StateWrites: 1, StateValue: 5, StateKey: 5, Timers: 1, TimerBytes: 10, Output: 5, LogLines: 1, LogBytes: 5, Handles: 1, Message: 5}
	for _, c := range []struct {
		do   func(*turn) abi.Code
		code abi.Code
		text string
	}{
		{func(t *turn) abi.Code { _, code := t.StateGet(huge); return code }, abi.NotFound, "no key"},
		{func(t *turn) abi.Code {
			if keys, code := keysOf(t, string(huge)); code != abi.OK || len(keys) != 0 {
				return code
			}
			return t.Fail(abi.NotFound, "", "nothing is listed")
		}, abi.NotFound, "nothing is listed"},
		{func(t *turn) abi.Code { return t.StateSet(huge, nil) }, abi.TooLarge, "limit state_key is 5"},
		{func(t *turn) abi.Code { return t.StateSet([]byte("k"), huge) }, abi.TooLarge, "limit state_value is 5"},
		{func(t *turn) abi.Code { t.StateSet([]byte("k"), nil); return t.StateSet([]byte("l"), nil) }, abi.LimitExceeded, "limit state_writes (1)"},
		{func(t *turn) abi.Code { t.StateSize = 80; return t.StateSet([]byte("k"), nil) }, abi.LimitExceeded, "limit state (80)"},
		{func(t *turn) abi.Code { _, code := t.Config(huge); return code }, abi.NotFound, "no attribute"},
		{func(t *turn) abi.Code { return t.SendTo(huge, nil) }, abi.NotFound, "no creature"},
		{func(t *turn) abi.Code { return t.Request(huge, nil, 1, 0) }, abi.NotFound, "no creature"},
		{func(t *turn) abi.Code { return abi.CodeOfStatus(t.Channel(huge)) }, abi.InvalidArgument, "1 to 256 bytes"},
		{func(t *turn) abi.Code { t.Channel([]byte("a")); return abi.CodeOfStatus(t.Channel([]byte("b"))) }, abi.LimitExceeded, "limit handles (1)"},
		{func(t *turn) abi.Code { return t.TimerSet(huge, 1, 0, nil) }, abi.TooLarge, "limit state_key is 5"},
		{func(t *turn) abi.Code { return t.TimerSet([]byte("a"), 1, 0, huge) }, abi.TooLarge, "limit message is 5"},
		{func(t *turn) abi.Code {
			t.TimerSet([]byte("a"), 1, 0, nil)
			return t.TimerSet([]byte("b"), 1, 0, nil)
		}, abi.LimitExceeded, "limit timers (1)"},
		{func(t *turn) abi.Code { t.c.limits.Message = 50; return t.TimerSet([]byte("a"), 1, 0, huge[:20]) }, abi.LimitExceeded, "limit timer_bytes (10)"},
		{func(t *turn) abi.Code { return t.Output(huge) }, abi.LimitExceeded, "limit output (5)"},
		{func(t *turn) abi.Code { t.c.limits.LogBytes = 2; return t.Log(abi.LevelInfo, huge) }, abi.LimitExceeded, "limit log_bytes (2)"},
		{func(t *turn) abi.Code { t.Log(abi.LevelInfo, nil); return t.Log(abi.LevelInfo, nil) }, abi.LimitExceeded, "limit log_lines (1)"},
	} {
		turn := newTestTurn(small)
		code := c.do(turn)
		if text := turn.LastError(); code != c.code || !strings.Contains(text, c.text) || len(text) > 300 {
			t.Errorf("%v, %.400q; want %v, %q", code, text, c.code, c.text)
		}
	}
}
