package effects

import (
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/veil"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TestRefusals makes calls that must be refused, one at a time, and checks the text.
func TestRefusals(t *testing.T) {
	limits := abi.Limits{Message: 20, Output: 4, LogLines: 1, LogBytes: 2, StateKey: 4, StateValue: 4, State: 100, StateWrites: 1, Timers: 1, TimerBytes: 20}
	long, reserved := []byte("12345"), journal.ReservedPrefix+"x\x00y\x00"
	for _, c := range []struct {
		name string
		call func(own *Own) abi.Code
		code abi.Code
		text string
	}{
		{"long key", func(o *Own) abi.Code { return o.StateSet(long, nil) }, abi.TooLarge, "the key has 5 bytes; the limit state_key is 4"},
		{"no key", func(o *Own) abi.Code { return o.StateSet(nil, nil) }, abi.InvalidArgument, "a key is UTF-8"},
		{"key with NUL", func(o *Own) abi.Code { return o.StateSet([]byte("a\x00"), nil) }, abi.InvalidArgument, "a key is UTF-8"},
		{"key that is not UTF-8", func(o *Own) abi.Code { _, code := o.StateDelete([]byte{0xff}); return code }, abi.InvalidArgument, "a key is UTF-8"},
		{"malformed key to read", func(o *Own) abi.Code { _, code := o.StateGet([]byte{0xff}); return code }, abi.InvalidArgument, "a key is UTF-8"},
		{"absent key", func(o *Own) abi.Code { _, code := o.StateGet([]byte("k")); return code }, abi.NotFound, "the state has no key"},
		{"long key to read", func(o *Own) abi.Code { _, code := o.StateGet(long); return code }, abi.NotFound, "the state has no key"},
		{"long value", func(o *Own) abi.Code { return o.StateSet([]byte("k"), long) }, abi.TooLarge, "the limit state_value is 4"},
		{"long timer name", func(o *Own) abi.Code { return o.TimerSet(long, 0, 0, nil) }, abi.TooLarge, "the name of the timer has 5 bytes"},
		{"no timer name", func(o *Own) abi.Code { return o.TimerSet(nil, 0, 0, nil) }, abi.InvalidArgument, "the name of a timer is UTF-8"},
		{"negative delay", func(o *Own) abi.Code { return o.TimerSet([]byte("t"), -1, 0, nil) }, abi.InvalidArgument, "not negative"},
		{"negative period", func(o *Own) abi.Code { return o.TimerSet([]byte("t"), 0, -1, nil) }, abi.InvalidArgument, "not negative"},
		{"large timer", func(o *Own) abi.Code { return o.TimerSet([]byte("t"), 0, 0, make([]byte, 21)) }, abi.TooLarge, "the payload has 21 bytes"},
		{"large message", func(o *Own) abi.Code { return o.Sendable(make([]byte, 20), []byte("x")) }, abi.TooLarge, "the message has 21 bytes"},
		{"malformed headers", func(o *Own) abi.Code { return o.Sendable(nil, []byte("x")) }, abi.InvalidArgument, "the headers are malformed"},
		{"the host's header", func(o *Own) abi.Code { return o.Sendable(nil, []byte(reserved)) }, abi.InvalidArgument, "are reserved for the host"},
		{"much output", func(o *Own) abi.Code { o.Output(long[:3]); return o.Output(long[:2]) }, abi.LimitExceeded, "the limit output (4)"},
		{"unknown level", func(o *Own) abi.Code { return o.Log(4, nil) }, abi.InvalidArgument, "4 is not a log level"},
		{"second line", func(o *Own) abi.Code { o.Log(abi.LevelInfo, nil); return o.Log(abi.LevelInfo, nil) }, abi.LimitExceeded, "the limit log_lines (1)"},
		{"long line", func(o *Own) abi.Code { return o.Log(abi.LevelInfo, long) }, abi.LimitExceeded, "the limit log_bytes (2)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := limits
			if c.name == "large timer" || strings.Contains(c.name, "header") {
				l.TimerBytes, l.Message = 100, max(l.Message, int64(len(reserved)))
			}
			if c.name == "large timer" {
				l.Message = 20
			}
			var own Own
			own.Begin(&l, nil, nil, 0, false)
			if code := c.call(&own); code != c.code || !strings.Contains(own.LastError(), c.text) {
				t.Errorf("%v: %s; want %v: %s", code, own.LastError(), c.code, c.text)
			}
			if len(own.Writes) != 0 || len(own.Timers) != 0 || own.StateSize != 0 {
				t.Errorf("a refused call has left %+v, %+v and %d bytes", own.Writes, own.Timers, own.StateSize)
			}
		})
	}
}

// TestReadOnly checks that only reading is allowed outside of creature_handle.
func TestReadOnly(t *testing.T) {
	limits := abi.DefaultLimits
	state, size := StateOf(map[string][]byte{"k": []byte("v")})
	var own Own
	own.Begin(&limits, nil, state, size, true)
	_, deleted := own.StateDelete([]byte("k"))
	_, cancelled := own.TimerCancel([]byte("t"))
	for name, code := range map[string]abi.Code{
		"set": own.StateSet([]byte("k"), nil), "delete": deleted, "timer": own.TimerSet([]byte("t"), time.Second, 0, nil),
		"cancel": cancelled, "output": own.Output(nil),
	} {
		if code != abi.Denied {
			t.Errorf("%s: %v", name, code)
		}
	}
	if v, code := own.StateGet([]byte("k")); code != abi.OK || string(v) != "v" || own.HasOutput {
		t.Errorf("the state is %q, %v; output: %v", v, code, own.HasOutput)
	}
}

// TestReset checks that no part of a turn is left, and that large memory is released.
func TestReset(t *testing.T) {
	limits := abi.DefaultLimits
	limits.Output = 2 << 20
	var own Own
	own.Begin(&limits, nil, nil, 0, false)
	own.Keep(make([]byte, 2<<20))
	for _, code := range []abi.Code{
		own.Output(make([]byte, 2<<20)), own.StateSet([]byte("k"), nil), own.TimerSet([]byte("t"), 0, 0, nil),
		own.Log(abi.LevelInfo, []byte("line")), own.Room(2, []byte("x"), nil),
	} {
		if code != abi.OK {
			t.Fatal(own.LastError())
		}
	}
	own.KnowTimers(map[string]int{"t": 1})
	own.Fail(abi.Denied, "", "no")
	own.Reset()
	if own.Arena != nil || own.HasOutput || len(own.Put)+len(own.Writes)+len(own.Timers)+len(own.Logs) != 0 ||
		own.KnowsTimers() || own.beforeBytes != 0 || own.sendCount != 0 || own.sendBytes != 0 || own.logBytes != 0 || own.Fault.Code != abi.OK {
		t.Errorf("Reset has left %+v", own)
	}
}

// TestLogHides checks what becomes of a line: secrets are hidden, and the text is valid UTF-8.
func TestLogHides(t *testing.T) {
	limits := abi.DefaultLimits
	var own Own
	own.Begin(&limits, veil.Of(&deploy.CreatureSpec{Config: []byte(`{"key":"swordfish"}`), Secret: []string{"key"}}), nil, 0, false)
	if code := own.Log(abi.LevelWarn, []byte("the key is swordfish \xff")); code != abi.OK {
		t.Fatal(code)
	}
	if want := "the key is " + deploy.HiddenValue + " \uFFFD"; own.Logs[0].Text != want {
		t.Errorf("the line is %q, want %q", own.Logs[0].Text, want)
	}
	e := own.Logs[0].Event(journal.Event{Creature: "c"})
	if e.Kind != journal.EventLog || e.Creature != "c" || !strings.Contains(string(e.Payload), `"level":"warn"`) {
		t.Errorf("the event is %+v", e)
	}
}

// TestLogCuts checks what remains of a line that is longer than the limit: whole characters, no
// part of a secret, and an ellipsis. After that, no other line can be logged.
func TestLogCuts(t *testing.T) {
	secret := veil.Of(&deploy.CreatureSpec{Config: []byte(`{"key":"swordfish"}`), Secret: []string{"key"}})
	many := strings.Repeat("swordfish", 1000)
	for _, c := range []struct {
		name, text, want string
		veil             *veil.Veil
	}{
		{"as long as the limit", "0123456789", "0123456789", nil},
		{"longer", "0123456789a", "0123456…", nil},
		{"a character at the limit", "012345ää789", "012345…", nil},
		{"one of four bytes", "01234😀😀", "01234…", nil},
		{"not UTF-8", strings.Repeat("\xff", 11), "…", nil},
		{"a part of a secret at the end", "0123456789swordf", "0123…", secret},
		{"a secret at the limit", "0123swordfish", "0123(se…", secret},
		{"many secrets", many, "", secret},
	} {
		t.Run(c.name, func(t *testing.T) {
			limits := abi.DefaultLimits
			limits.LogBytes = 10
			var own Own
			own.Begin(&limits, c.veil, nil, 0, false)
			if code := own.Log(abi.LevelError, []byte(c.text)); code != abi.OK {
				t.Fatal(code, own.LastError())
			}
			got := own.Logs[0].Text
			if c.want != "" && got != c.want || len(got) > 10 || strings.Contains(got, "sw") {
				t.Errorf("the line is %q, want %q", got, c.want)
			}
			if code := own.Log(abi.LevelError, []byte("more")); code != abi.LimitExceeded {
				t.Errorf("logging another line: %v, want limit", code)
			}
		})
	}
}

// TestLastErrorNamesIDs checks the text that a guest gets.
func TestLastErrorNamesIDs(t *testing.T) {
	var own Own
	own.Fail(abi.NotFound, "look again", "there is no %s", "pond")
	own.Fault.IDs = map[string]string{"graph": "g1", "channel": "c1"}
	if got, want := own.LastError(), "there is no pond; look again (channel=c1, graph=g1)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := own.Fault.Error("send"); err.Code != abi.NotFound || err.Op != "send" || err.Remedy != "look again" {
		t.Errorf("%+v", err)
	}
}
