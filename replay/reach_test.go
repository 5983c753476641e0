package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/replay"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// mirror is a capability that answers with the request's body, and refuses one particular
// body immediately.
type mirror struct{}

func (mirror) Name() string                                   { return "mirror" }
func (mirror) Settings() []capability.Setting                 { return nil }
func (mirror) Open(json.RawMessage) (capability.Grant, error) { return mirror{}, nil }
func (mirror) View(r capability.Request) map[string]any {
	return map[string]any{"body": string(r.Body)}
}
func (mirror) Limits() capability.Limits      { return capability.Limits{} }
func (mirror) Allows() []string               { return nil }
func (mirror) Warnings() []capability.Warning { return nil }
func (mirror) Do(_ context.Context, c capability.Call) capability.Result {
	return capability.Result{Payload: c.Body}
}

func (mirror) Check(r capability.Request) error {
	if string(r.Body) == "refused" {
		return &abi.Error{Code: abi.Denied, Message: "it is refused"}
	}
	return nil
}

func (mirror) Amend(r capability.Request, members json.RawMessage) (capability.Request, error) {
	r.Body = members
	return r, nil
}

// strict denies requests that begin with "no", and changes those that begin with "other".
type strict struct{}

func (strict) Judges(k journal.PolicyKind) bool                                { return k == journal.JudgeCapability }
func (strict) JudgesSend(string) bool                                          { return false }
func (strict) Send(context.Context, *deploy.SendEvent) (d deploy.SendDecision) { return d }

func (strict) Judge(_ context.Context, ev *deploy.PolicyEvent) (d deploy.Decision) {
	var r struct{ Body string }
	_ = json.Unmarshal(ev.Request, &r)
	switch {
	case strings.HasPrefix(r.Body, "no"):
		d.Denials = []deploy.Verdict{{Policy: "strict", Reason: "no"}}
	case strings.HasPrefix(r.Body, "other"):
		d.Request, d.ChangedBy = json.RawMessage(`"x"`), []deploy.Verdict{{Policy: "strict"}}
	}
	return d
}

// mixed makes requests with every possible outcome in one turn, among other effects.
// change replaces the bodies of some.
func mixed(change map[string]string) behaviour {
	reach := func(t abi.Turn, body string, tag int64) {
		if other, ok := change[body]; ok {
			body = other
		}
		if code := t.Request([]byte("capability:mirror.m"), []byte(body), time.Second, tag); code != abi.OK {
			t.Log(abi.LevelWarn, []byte(code.String()+": "+t.LastError()))
		}
	}
	return func(t abi.Turn, kind abi.Kind, _ *int) error {
		switch kind {
		case abi.KindResult:
			t.Output(append(append(get(t, abi.SourceDetail), ' '), get(t, abi.SourcePayload)...))
			return nil
		case abi.KindMessage:
		default:
			return nil
		}
		reach(t, "no 1", 1)
		reach(t, "plain 1", 2)
		t.SendTo([]byte("b"), []byte("hello"))
		t.Request([]byte("b"), []byte("how are you?"), time.Hour, 3)
		reach(t, "refused", 4)
		reach(t, "other 1", 5)
		t.Request([]byte("absent"), []byte("and you?"), time.Hour, 6)
		reach(t, "no 2", 7)
		reach(t, "plain 2", 8)
		if string(get(t, abi.SourcePayload)) == "fail" {
			return &abi.Error{Code: abi.Failed, Message: "as it was told"}
		}
		return nil
	}
}

// TestRequestsAmongOtherEffects replays turns whose requests to a capability were executed,
// refused, denied and changed. Without the capability nothing differs. With a module that
// makes other requests, the differences are found, even in requests that policies have denied
// or changed.
func TestRequestsAmongOtherEffects(t *testing.T) {
	w := &world{t: t, dir: t.TempDir(), host: &fakeHost{behaviours: map[string]behaviour{
		"mixed": mixed(nil), "quiet": func(abi.Turn, abi.Kind, *int) error { return nil },
	}}}
	var err error
	if w.storage, err = sqlitestore.Open(t.Context(), w.dir, w.options); err != nil {
		t.Fatal(err)
	}
	if w.Engine, err = engine.New(t.Context(), engine.Options{Host: w.host, Storage: w.storage, Load: load, Capabilities: []capability.Kind{mirror{}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	restart := deploy.RestartPolicy{Max: 1000, Backoff: time.Microsecond, BackoffMax: time.Microsecond, Attempts: 2}
	grant := []deploy.Capability{{Kind: "mirror", Name: "m", Settings: json.RawMessage(`{}`)}}
	d := &deploy.Deployment{Name: "team", Policy: strict{}, Channels: []deploy.ChannelSpec{{Address: "channel.c", Name: "c"}}}
	for _, name := range []string{"a", "b"} {
		d.Creatures = append(d.Creatures, deploy.CreatureSpec{Name: name, Address: "creature." + name, Module: "mixed", Restart: restart, Capabilities: grant, Listen: []deploy.WireSpec{{Channel: "channel.c"}}})
	}
	d.Creatures[1].Module, d.Creatures[1].Capabilities = "quiet", nil
	applied, err := w.Apply(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"go", "fail", "go"} {
		w.tell(applied.Creatures["creature.a"], text)
		w.wait()
	}
	w.close()
	same(t, replayDir(t, w.dir, w.host, replay.Options{All: true}), 20)
	for i, body := range []string{"no 1", "plain 1", "refused", "other 1", "no 2", "plain 2"} {
		w.host.behaviours["changed"] = mixed(map[string]string{body: "no. " + body})
		r := replayDir(t, w.dir, w.host, replay.Options{All: true, Creatures: []string{"a"}, Module: []byte("changed")})
		if i == 2 { // a refusal that was recorded is repeated, whatever the request is
			same(t, r, 3)
			continue
		}
		if r.Differ != 2 {
			t.Errorf("with another request in place of %s, %d turns differ, want 2", body, r.Differ)
			continue
		}
		got := fmt.Sprint(r.Differences[0].Diff())
		if n := strings.Count(got, "request to a capability"); n == 0 || !strings.Contains(got, "no. "+body) {
			t.Errorf("with another request in place of %s, the difference is %s", body, got)
		}
		if changed := slices.DeleteFunc(r.Differences[0].Diff(), func(c replay.Change) bool { return c.Sign == ' ' }); len(changed) != 2 {
			t.Errorf("with another request in place of %s, %v changed", body, changed)
		}
	}
}
