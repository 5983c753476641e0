package terrarium_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
	"github.com/seed47132306/terrarium/sdk/go/terrarium/terrariumtest"
)

// handler returns a creature with the given handler.
func handler(f func(*terrarium.Turn) error) terrarium.Creature {
	return terrarium.Creature{Handle: f}
}

func TestWhatIsHandedOver(t *testing.T) {
	var got []any
	f := terrariumtest.New(handler(func(t *terrarium.Turn) error {
		got = []any{t.Kind(), string(t.Payload()), t.Channel(), t.Sender(), t.MessageID(), t.Self(), string(t.Detail()),
			t.Headers(), t.Now(), string(t.ConfigJSON()), t.FuelLeft(), t.HasFeature(terrarium.FeatureTimers)}
		return nil
	}))
	f.Time = 1_500_000_000
	err := f.Deliver(terrarium.KindMessage, map[terrarium.Source]string{
		terrarium.SourcePayload: "\xff\x00", terrarium.SourceChannel: "in", terrarium.SourceSender: "ann",
		terrarium.SourceMessageID: "m1", terrarium.SourceDetail: `{"seq":1}`, terrarium.SourceHeaders: "a\x001\x00b\x00\x00",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []any{terrarium.KindMessage, "\xff\x00", "in", "ann", "m1", "self", `{"seq":1}`,
		[]terrarium.Header{{Name: "a", Value: "1"}, {Name: "b"}}, int64(1_500_000_000), "{}", int64(-1), true}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestAwareness(t *testing.T) {
	var got []any
	f := terrariumtest.New(handler(func(t *terrarium.Turn) error {
		got = []any{t.AwarenessRevision(), string(t.Awareness()), t.AwarenessMarkdown()}
		return nil
	}))
	for _, c := range []struct {
		sources map[terrarium.Source]string
		want    []any
	}{
		{nil, []any{uint64(0), "", ""}}, // a host without it
		{
			map[terrarium.Source]string{
				terrarium.SourceAwarenessRevision: "18446744073709551615", terrarium.SourceAwarenessJSON: `{"revision":1}`,
				terrarium.SourceAwarenessMarkdown: "# `ann`",
			},
			[]any{uint64(1<<64 - 1), `{"revision":1}`, "# `ann`"},
		},
	} {
		if err := f.Deliver(terrarium.KindGraphChanged, c.sources); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("got %v, want %v", got, c.want)
		}
	}
}

func TestSends(t *testing.T) {
	f := terrariumtest.New(handler(func(t *terrarium.Turn) error {
		if err := t.Send("b", t.Payload(), terrarium.Header{Name: "n", Value: "v"}); err != nil {
			return err
		}
		if n, err := t.SendAll([]byte("all")); n != 2 || err != nil {
			return errors.New("not on every channel")
		}
		if err := t.SendTo("ann", nil); err != nil {
			return err
		}
		return t.Output([]byte("out"))
	}))
	f.Channels = []string{"a", "b"}
	if err := f.Message("in", "x"); err != nil {
		t.Fatal(err)
	}
	want := []terrariumtest.Sent{
		{Channel: "b", Payload: "x", Headers: "n\x00v\x00"},
		{Channel: "a", Payload: "all"}, {Channel: "b", Payload: "all"},
		{To: "ann"},
	}
	if !slices.Equal(f.Sent, want) || !slices.Equal(f.Outputs, []string{"out"}) {
		t.Errorf("sent %v, output %v", f.Sent, f.Outputs)
	}
}

func TestState(t *testing.T) {
	f := terrariumtest.New(handler(func(t *terrarium.Turn) error {
		if _, err := t.StateGet("n/a"); !errors.Is(err, terrarium.NotFound) {
			return errors.New("a missing key is found")
		}
		for _, key := range []string{"n/b", "n/a", "m"} {
			if err := t.StateSet(key, []byte(key+"\x00")); err != nil {
				return err
			}
		}
		value, err := t.StateGet("n/a")
		if err != nil || string(value) != "n/a\x00" {
			return errors.New("the turn's own write is not seen")
		}
		if keys, err := t.StateList("n/"); err != nil || !slices.Equal(keys, []string{"n/a", "n/b"}) {
			return errors.New("the list is " + strings.Join(keys, ","))
		}
		if keys, err := t.StateList("zz"); err != nil || len(keys) != 0 {
			return errors.New("an empty list is not empty")
		}
		if existed, err := t.StateDelete("m"); err != nil || !existed {
			return errors.New("nothing was deleted")
		}
		if existed, err := t.StateDelete("m"); err != nil || existed {
			return errors.New("it was deleted twice")
		}
		if err := t.StateSet("", nil); !errors.Is(err, terrarium.InvalidArgument) {
			return errors.New("an empty key is accepted")
		}
		return nil
	}))
	if err := f.Message("in", ""); err != nil {
		t.Fatal(err, f.Logs)
	}
	if len(f.State) != 2 || f.State["n/b"] != "n/b\x00" {
		t.Errorf("the state is %v", f.State)
	}
}

func TestFailedTurnsDoNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code terrarium.Code
		log  string
	}{
		{"a plain error", errors.New("broken"), terrarium.Failed, "error broken"},
		{"a code", terrarium.Conflict, terrarium.Conflict, "error conflict"},
		{"not a code", terrarium.Code(-7), terrarium.Failed, "error unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := terrariumtest.New(handler(func(t *terrarium.Turn) error {
				if err := t.Output([]byte("x")); err != nil {
					return err
				}
				if err := t.StateSet("k", nil); err != nil {
					return err
				}
				return c.err
			}))
			if err := f.Message("in", ""); !errors.Is(err, c.code) {
				t.Errorf("%v, want %v", err, c.code)
			}
			if len(f.Outputs) > 0 || len(f.State) > 0 {
				t.Errorf("output %v, state %v", f.Outputs, f.State)
			}
			if !slices.Equal(f.Logs, []string{c.log}) {
				t.Errorf("the log is %q", f.Logs)
			}
		})
	}
}

func TestPanicsFailTheTurn(t *testing.T) {
	for name, value := range map[string]any{"a text": "out of cheese", "an error": errors.New("out of cheese"), "a code": terrarium.Denied} {
		f := terrariumtest.New(handler(func(t *terrarium.Turn) error {
			if err := t.Output([]byte("x")); err != nil {
				return err
			}
			panic(value)
		}))
		if err := f.Message("in", ""); !errors.Is(err, terrarium.Trapped) || len(f.Outputs) > 0 {
			t.Errorf("%s: %v, output %v", name, err, f.Outputs)
		}
		if len(f.Logs) != 1 || !strings.Contains(f.Logs[0], "turn_test.go:") || name != "a code" && !strings.HasPrefix(f.Logs[0], "error panic: out of cheese (at ") {
			t.Errorf("%s: the log is %q", name, f.Logs)
		}
	}
}

func TestErrorsAreTyped(t *testing.T) {
	f := terrariumtest.New(handler(func(t *terrarium.Turn) error { return t.Send("nowhere", nil) }))
	if err := f.Message("in", ""); !errors.Is(err, terrarium.NotConnected) {
		t.Error(err)
	}
	if want := `error send: the creature has no send alias "nowhere" (not_connected)`; !slices.Equal(f.Logs, []string{want}) {
		t.Errorf("the log is %q", f.Logs)
	}
	absent := terrariumtest.New(handler(func(t *terrarium.Turn) error {
		_, errTool := t.Tool("group_status", nil)
		for _, err := range []error{t.HTTP(nil, nil, 1), errTool} {
			var e *terrarium.Error
			if !errors.As(err, &e) || e.Code != terrarium.Unsupported {
				return errors.New("an absent feature answers otherwise")
			}
		}
		return nil
	}))
	if err := absent.Message("in", ""); err != nil {
		t.Error(err, absent.Logs)
	}
}

func TestInitMayOnlyRead(t *testing.T) {
	c := terrarium.Creature{Init: func(t *terrarium.Turn) error {
		if name, ok := t.Config("name"); !ok || name != "x" {
			return terrarium.InvalidArgument
		}
		if n, ok := t.Config("n"); !ok || n != "3" {
			return terrarium.InvalidArgument
		}
		return t.Output(nil)
	}}
	f := terrariumtest.New(c)
	if err := f.Init(); !errors.Is(err, terrarium.InvalidArgument) {
		t.Errorf("without configuration: %v", err)
	}
	f.Config = map[string]any{"name": "x", "n": 3}
	if err := f.Init(); !errors.Is(err, terrarium.Denied) {
		t.Errorf("an effect in Init: %v", err)
	}
	if err := f.Message("in", ""); !errors.Is(err, terrarium.Unsupported) {
		t.Errorf("without a handler: %v", err)
	}
	if err := terrariumtest.New(handler(nil)).Init(); err != nil {
		t.Errorf("without Init: %v", err)
	}
}

func TestTools(t *testing.T) {
	f := terrariumtest.New(handler(func(t *terrarium.Turn) error {
		if !t.HasFeature(terrarium.FeatureTools) {
			return terrarium.Unsupported
		}
		result, err := t.Tool(string(t.Payload()), []byte("{}"))
		if err != nil {
			return err
		}
		return t.Output(result)
	}))
	if err := f.Message("in", "group_status"); !errors.Is(err, terrarium.Unsupported) {
		t.Errorf("without tools: %v", err)
	}
	f.Tools = func(name string, args []byte) ([]byte, error) {
		if name != "group_status" {
			return nil, terrarium.NotFound
		}
		return []byte("status" + string(args)), nil
	}
	if err := f.Message("in", "group_dance"); !errors.Is(err, terrarium.NotFound) || len(f.Outputs) != 0 {
		t.Errorf("a tool that there is not: %v, %v", err, f.Outputs)
	}
	if err := f.Message("in", "group_status"); err != nil || !slices.Equal(f.Outputs, []string{"status{}"}) {
		t.Errorf("a tool: %v, %v", err, f.Outputs)
	}
}

func TestCodesHaveNames(t *testing.T) {
	if terrarium.NotFound.Error() != "not_found" || terrarium.Internal.Error() != "internal" {
		t.Errorf("%v, %v", terrarium.NotFound, terrarium.Internal)
	}
}

// silent is a host that returns success and keeps nothing.
type silent struct{ terrarium.Host }

func (silent) Read(_ terrarium.Source, _ int32, p []byte) int32 { return int32(len(p)) }
func (silent) Send(int32, []byte, []byte) int32                 { return 1 }
func (silent) Channel(string) int32                             { return 0 }

// A turn that reads a message and sends it on allocates only the turn, the
// payload and the headers.
func TestTurnsAllocateLittle(t *testing.T) {
	const most = 3
	c := handler(func(t *terrarium.Turn) error {
		return t.Send("out", t.Payload(), terrarium.Header{Name: "n", Value: "v"})
	})
	allocs := testing.AllocsPerRun(100, func() {
		if status := c.RunHandle(silent{}, terrarium.KindMessage, 100); status != 0 {
			t.Fatal(status)
		}
	})
	if allocs > most {
		t.Errorf("%v allocations", allocs)
	}
}
