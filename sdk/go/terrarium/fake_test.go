package terrarium_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
	"github.com/seed47132306/terrarium/sdk/go/terrarium/terrariumtest"
)

func TestTimersFireInOrder(t *testing.T) {
	type fired struct {
		name, payload string
		at            int64
	}
	var got []fired
	f := terrariumtest.New(handler(func(t *terrarium.Turn) error {
		switch t.Kind() {
		case terrarium.KindStart:
			return errors.Join(
				t.SetTimer("twice", 1000, 2000, []byte("a")),
				t.SetTimer("once", 2000, 0, []byte("b")),
				t.SetTimer("never", 3_600_000, 0, nil))
		case terrarium.KindTimer:
			got = append(got, fired{t.TimerName(), string(t.Payload()), t.Now() / 1_000_000_000})
			if t.Now()/1_000_000_000 == 3 {
				was, err := t.CancelTimer("twice")
				if !was {
					return errors.New("the timer was not set")
				}
				return err
			}
		}
		return nil
	}))
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	if err := f.Advance(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if want := []fired{{"twice", "a", 1}, {"once", "b", 2}, {"twice", "a", 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("fired %v, want %v", got, want)
	}
	if len(f.Timers) != 1 || f.Time != int64(10*time.Second) {
		t.Errorf("left: %v at %d", f.Timers, f.Time)
	}
}

func TestRequestsAndResults(t *testing.T) {
	var got []any
	f := terrariumtest.New(handler(func(t *terrarium.Turn) error {
		switch t.Kind() {
		case terrarium.KindMessage:
			return t.Request("sage", t.Payload(), 1000, 7)
		case terrarium.KindResult:
			got = append(got, t.Tag(), t.ResultCode(), string(t.Payload()))
		case terrarium.KindRequest:
			if string(t.Payload()) == "silence" {
				return nil
			}
			if err := t.Reply([]byte("yes")); err != nil {
				return err
			}
			if err := t.Reply(nil); !errors.Is(err, terrarium.AlreadyExists) {
				return errors.New("a second reply was accepted")
			}
		}
		return nil
	}))
	err := errors.Join(f.Message("in", "why"), f.Answer(7, "so"), f.Fail(8, terrarium.Deadline, "too late"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []terrariumtest.Request{{To: "sage", Payload: "why", DeadlineMS: 1000, Tag: 7}}; !reflect.DeepEqual(f.Requests, want) {
		t.Errorf("requests %v", f.Requests)
	}
	if want := []any{int64(7), "ok", "so", int64(8), "deadline", "too late"}; !reflect.DeepEqual(got, want) {
		t.Errorf("results %v", got)
	}
	for question, want := range map[string]string{"well?": "yes", "silence": ""} {
		if reply, replied, err := f.Request(question); reply != want || replied != (want != "") || err != nil {
			t.Errorf("%s: %q, %v, %v", question, reply, replied, err)
		}
	}
	if err := f.Deliver(terrarium.KindMessage, nil); err != nil {
		t.Error(err)
	}
	early := terrariumtest.New(handler(func(t *terrarium.Turn) error { return t.Reply(nil) }))
	if err := early.Message("in", ""); !errors.Is(err, terrarium.Denied) {
		t.Errorf("a reply to a message: %v", err)
	}
}

func TestLimitsAreThoseOfTheHost(t *testing.T) {
	large := make([]byte, 1<<20+1)
	f := terrariumtest.New(handler(func(t *terrarium.Turn) error {
		_, errSend := t.SendAll(large)
		for _, err := range []error{t.StateSet("k", large), t.StateSet(string(large[:513]), nil), errSend} {
			if !errors.Is(err, terrarium.TooLarge) && !errors.Is(err, terrarium.InvalidArgument) {
				return errors.New("a limit does not hold")
			}
		}
		return nil
	}))
	if err := f.Message("in", ""); err != nil {
		t.Error(err, f.Logs)
	}
}

func TestConfiguration(t *testing.T) {
	read := func(t *terrarium.Turn) (got []any) {
		text, errText := t.ConfigText("text", "default")
		whole, errWhole := t.ConfigWhole("whole", 1, 9, 5)
		flag, errFlag := t.ConfigBool("flag", true)
		for _, err := range []error{errText, errWhole, errFlag, t.ConfigKnows("text", "whole", "flag")} {
			if err != nil {
				return append(got, err.Error())
			}
		}
		return append(got, text, whole, flag)
	}
	for _, c := range []struct {
		config map[string]any
		want   []any
	}{
		{nil, []any{"default", int64(5), true}},
		{map[string]any{"text": "a\n\"ü\U0001f438", "whole": 9, "flag": false}, []any{"a\n\"ü\U0001f438", int64(9), false}},
		{map[string]any{"text": 5}, []any{"config text: it must be a text"}},
		{map[string]any{"whole": 10}, []any{"config whole: it must be a whole number from 1 to 9"}},
		{map[string]any{"whole": 1.5}, []any{"config whole: it must be a whole number from 1 to 9"}},
		{map[string]any{"whole": "5"}, []any{"config whole: it must be a whole number from 1 to 9"}},
		{map[string]any{"flag": "true"}, []any{"config flag: it must be true or false"}},
		{map[string]any{"flog": 1}, []any{"config flog: the creature has no such attribute; it has text, whole, flag"}},
	} {
		var got []any
		f := terrariumtest.New(handler(func(t *terrarium.Turn) error { got = read(t); return nil }))
		f.Config = c.config
		if err := f.Message("in", ""); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v (%v), want %v", c.config, got, err, c.want)
		}
	}
	required := terrariumtest.New(handler(func(t *terrarium.Turn) error { _, err := t.ConfigText("name"); return err }))
	if err := required.Message("in", ""); !errors.Is(err, terrarium.NotFound) || required.Logs[0] != "error config name: it is required" {
		t.Errorf("%v, %v", err, required.Logs)
	}
}
