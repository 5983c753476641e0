package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/hostile"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/replay"
)

// script does what a message says, on the third line of a function if it fails.
const script = `export default {
  message(turn) {
    const text = turn.text(), n = turn.state.getWhole('n') + 1
    turn.state.setWhole('n', n)
    console.info('word ' + text)
    turn.setTimer('later', { delayMs: 36e5, payload: text })
    if (text.startsWith('boom')) throw new Error('no ' + text)
    turn.send('out', text + n)
    turn.output(text)
  },
}`

// repeatable is a session of one creature that has handled three messages. The turn of the second has failed.
type repeatable struct {
	t        *testing.T
	tr       *terrarium.Terrarium
	dir      string
	creature string
	turns    []EventRecord
	host     *hooked // nil: the usual one
}

func newRepeatable(t *testing.T, o terrarium.Options) *repeatable {
	o.Dir = t.TempDir()
	r := &repeatable{t: t, tr: open(t, o), dir: o.Dir}
	config, err := json.Marshal(map[string]string{"script": script})
	noError(t, err)
	added := do(t, r.tr, "add_creature", fmt.Sprintf(`{"name": "newt", "module": "builtin:js", "config": %s, "restart": {"attempts": 1}, "limits": {"fuel": 200000000, "deadline": "1h"}}`, config))
	r.creature = added["creature"].(string)
	do(t, r.tr, "add_channel", `{"graph": "newt", "name": "out"}`)
	do(t, r.tr, "set_send", `{"creature": "newt", "channel": "out", "on": true}`)
	r.feed("frog", "boom", "toad")
	r.turns = r.handled()
	if len(r.turns) != 3 || r.turns[1].Kind.String() != "turn_failed" {
		t.Fatalf("there are %d turns", len(r.turns))
	}
	return r
}

func (r *repeatable) feed(words ...string) {
	r.t.Helper()
	for _, word := range words {
		do(r.t, r.tr, "send_to", fmt.Sprintf(`{"creature": %q, "payload": %q, "durable": true}`, r.creature, word))
	}
	do(r.t, r.tr, "wait_idle", `{}`)
}

func (r *repeatable) history(kinds ...string) []EventRecord {
	r.t.Helper()
	args, err := json.Marshal(HistoryArgs{Graph: "newt", Kinds: kinds})
	noError(r.t, err)
	result, err := Do(context.Background(), r.tr, "history", args)
	noError(r.t, err)
	return result.(*HistoryResult).Events
}

// handled lists the turns that handled a message: not those of the start.
func (r *repeatable) handled() []EventRecord {
	return slices.DeleteFunc(r.history("turn_ended", "turn_failed"), func(e EventRecord) bool { return e.Channel == "" })
}

// again runs a turn again, with these further fields of the request.
func (r *repeatable) again(rights Rights, turn, more string) (*ReplayTurnResult, error) {
	result, err := DoAs(context.Background(), r.tr, rights, "replay_turn", json.RawMessage(fmt.Sprintf(`{"turn": %q%s}`, turn, more)))
	if err != nil {
		return nil, err
	}
	return result.(*ReplayTurnResult), nil
}

func (r *repeatable) must(rights Rights, turn, more string) *ReplayTurnResult {
	r.t.Helper()
	out, err := r.again(rights, turn, more)
	noError(r.t, err)
	return out
}

// everything returns all that a replay must not change.
func (r *repeatable) everything() string {
	r.t.Helper()
	b, err := json.Marshal(r.history())
	noError(r.t, err)
	return fmt.Sprint(string(b), do(r.t, r.tr, "state", `{"creature": "newt"}`), do(r.t, r.tr, "timers", `{"creature": "newt"}`))
}

// in returns the same session for a subtest.
func (r *repeatable) in(t *testing.T) *repeatable {
	c := *r
	c.t = t
	return &c
}

var admin = Rights{Scope: Admin}

func TestReplayTurn(t *testing.T) {
	r := newRepeatable(t, terrarium.Options{})
	t.Run("the same again", r.doTheSame)
	t.Run("another module", r.differOnAnotherModule)
	t.Run("rights", r.needRights)
	t.Run("errors", r.areRefused)
	t.Run("hostile modules", r.boundHostileModules)
	t.Run("a changed module", r.missTheirModule)
}

// What happens while the guest runs.
func TestReplayTurnMeanwhile(t *testing.T) {
	h := newHooked(t)
	r := newRepeatable(t, terrarium.Options{Host: h})
	r.host = h
	t.Run("interrupted", r.areInterrupted)
	t.Run("waiting", r.wait)
	t.Run("changes", r.runWhileTheSessionChanges)
}

// A turn does the same again, with the state as it was at that time, and nothing changes.
func (r *repeatable) doTheSame(t *testing.T) {
	r = r.in(t)
	before := r.everything()
	for i, want := range []string{"send out frog1 | output  frog | state n 1 | timer later frog | log info word frog | ", "log info word boom | log error no boom\n    at message (newt.js:7:58) | failed failed creature_handle: the guest returned -20 (failed): no boom", "send out toad2 | output  toad | state n 2 | timer later toad | log info word toad | "} {
		out := r.must(admin, r.turns[i].ID, "")
		got := ""
		for _, row := range out.Rows {
			if !row.Same || row.Then == nil || row.Again == nil || string(row.Then.Payload) != string(row.Again.Payload) && row.Then.Kind != replay.EffectFailed {
				t.Errorf("turn %d: %+v and %+v are not the same", i, row.Then, row.Again)
				continue
			}
			got += fmt.Sprintf("%s %s %s | ", row.Again.Kind, row.Again.Target, row.Again.Payload)
		}
		if !out.Same || out.First != -1 || !strings.HasPrefix(got, want) {
			t.Errorf("turn %d does %q again, want %q: %+v", i, got, want, out)
		}
		if out.Then.Fuel <= 0 || out.Again.Fuel <= 0 || out.Then.SHA256 != out.Again.SHA256 || out.Again.Module != "builtin:js" || out.Delivery.Kind != "message" || out.Name != "newt" {
			t.Errorf("turn %d: %+v", i, out)
		}
	}
	failed := r.must(admin, r.turns[1].ID, `, "graph": "newt"`)
	for _, side := range []ReplaySide{failed.Then, failed.Again} {
		if side.Error == nil || side.Error.Code != "failed" || !strings.Contains(side.Error.Message, "newt.js:7") {
			t.Errorf("the error is %+v, want the line of the script", side.Error)
		}
	}
	if after := r.everything(); after != before {
		t.Errorf("running turns again changed\n%s\nto\n%s", before, after)
	}
}

// Another module does something else, and the answer has the first difference.
func (r *repeatable) differOnAnotherModule(t *testing.T) {
	r = r.in(t)
	before := r.everything()
	do(t, r.tr, "add_creature", `{"name": "echo", "module": "builtin:echo", "join": "newt"}`)
	echo := moduleHash(t, r.tr, "echo")
	for _, module := range []string{"builtin:echo", "sha256:" + echo[:8], "sha256:" + strings.ToUpper(echo), "../plugins/echo/echo.wasm"} {
		out := r.must(admin, r.turns[0].ID, fmt.Sprintf(`, "module": %q`, module))
		if out.Same || out.First != 0 || out.Again.SHA256 != echo || out.Again.Module != module {
			t.Fatalf("%s: %+v", module, out)
		}
		first := out.Rows[0]
		if first.Then == nil || first.Again == nil || first.Then.Kind != "send" || string(first.Then.Payload) != "frog1" || string(first.Again.Payload) != "frog" {
			t.Errorf("%s: the first difference is %+v and %+v", module, first.Then, first.Again)
		}
	}
	if out := r.must(admin, r.turns[1].ID, `, "module": "builtin:echo"`); out.Then.Error == nil || out.Again.Error != nil || out.Same {
		t.Errorf("a failure that is fixed: %+v", out)
	}
	do(t, r.tr, "remove_creature", `{"creature": "echo"}`)
	if after := r.everything(); !strings.HasPrefix(after, before[:strings.Index(before, "]map[")]) {
		t.Errorf("running turns again changed\n%s\nto\n%s", before, after)
	}
}

func moduleHash(t *testing.T, tr *terrarium.Terrarium, name string) string {
	t.Helper()
	for _, g := range do(t, tr, "status", `{}`)["graphs"].([]any) {
		for _, c := range g.(map[string]any)["creatures"].([]any) {
			if c := c.(map[string]any); c["name"] == name {
				return c["module_sha256"].(string)
			}
		}
	}
	t.Fatal("no creature", name)
	return ""
}

// A caller with the scope read sees no more than the events of the turn show, and cannot
// run another module. A token for another graph sees nothing.
func (r *repeatable) needRights(t *testing.T) {
	r = r.in(t)
	for i, turn := range r.turns {
		b, err := json.Marshal(r.must(Rights{Scope: Read}, turn.ID, ""))
		noError(t, err)
		for _, content := range []string{"frog1", "word", "toad", "later", `"1"`} {
			if strings.Contains(string(b), content) {
				t.Errorf("turn %d shows %q to a reader: %s", i, content, b)
			}
		}
	}
	b, err := json.Marshal(r.must(Rights{Scope: Operate}, r.turns[0].ID, ""))
	noError(t, err)
	if !strings.Contains(string(b), "word frog") {
		t.Errorf("an operator does not see contents: %s", b)
	}
	do(t, r.tr, "add_creature", `{"name": "other", "module": "builtin:echo"}`)
	for name, c := range map[string]struct {
		rights Rights
		more   string
		code   abi.Code
	}{
		"a reader with a module":      {Rights{Scope: Read}, `, "module": "builtin:echo"`, abi.NotPrivileged},
		"an operator with a module":   {Rights{Scope: Operate}, `, "module": "builtin:echo"`, abi.NotPrivileged},
		"a token for another graph":   {Rights{Scope: Admin, Graphs: []string{"other"}}, "", abi.NotFound},
		"a graph outside the token":   {Rights{Scope: Admin, Graphs: []string{"other"}}, `, "graph": "newt"`, abi.NotPrivileged},
		"a session outside the token": {Rights{Scope: Admin, Graphs: []string{"other"}}, fmt.Sprintf(`, "session": %q`, sessionOf(t, r.tr)), abi.NotPrivileged},
	} {
		if _, err := r.again(c.rights, r.turns[0].ID, c.more); abi.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want the code %v", name, err, c.code)
		}
	}
	if out := r.must(Rights{Scope: Read, Graphs: []string{"newt"}}, r.turns[0].ID, ""); !out.Same {
		t.Errorf("with a token for the graph: %+v", out)
	}
}

func sessionOf(t *testing.T, tr *terrarium.Terrarium) string {
	return do(t, tr, "sessions", `{}`)["sessions"].([]any)[0].(map[string]any)["session"].(string)
}

// Every error has a code, a remedy and ids.
func (r *repeatable) areRefused(t *testing.T) {
	r = r.in(t)
	other := filepath.Join(t.TempDir(), "other.wasm")
	noError(t, os.WriteFile(other, []byte("no module"), 0o600))
	origin, _, _ := strings.Cut(r.turns[0].ID, "-")
	for name, c := range map[string]struct {
		turn, more string
		code       abi.Code
		id         string
	}{
		"not an id":               {"nonsense", "", abi.InvalidArgument, ""},
		"an unknown log":          {strings.Repeat("0", 31) + "7-5", "", abi.NotFound, "turn"},
		"event zero":              {origin + "-0", "", abi.NotFound, "turn"},
		"a later event":           {origin + "-18446744073709551615", "", abi.NotFound, "turn"},
		"a message":               {r.turns[0].Cause, "", abi.InvalidArgument, "turn"},
		"an unknown graph":        {r.turns[0].ID, `, "graph": "nowhere"`, abi.NotFound, "graph"},
		"two places":              {r.turns[0].ID, `, "graph": "newt", "session": "x"`, abi.InvalidArgument, ""},
		"a missing module":        {r.turns[0].ID, `, "module": "missing.wasm"`, abi.NotFound, "path"},
		"an unknown builtin":      {r.turns[0].ID, `, "module": "builtin:missing"`, abi.NotFound, "module"},
		"what is no module":       {r.turns[0].ID, fmt.Sprintf(`, "module": %q`, other), abi.InvalidArgument, "turn"},
		"an unknown hash":         {r.turns[0].ID, `, "module": "sha256:00000000"`, abi.NotFound, "module"},
		"a hash that is no hash":  {r.turns[0].ID, `, "module": "sha256:"`, abi.InvalidArgument, "module"},
		"a session that is none":  {r.turns[0].ID, `, "session": "absent"`, abi.NotFound, "session"},
		"a turn without a record": {"", "", abi.InvalidArgument, ""},
	} {
		_, err := r.again(admin, c.turn, c.more)
		e := NewErrorRecord(err)
		if abi.CodeOf(err) != c.code || e.Remedy == "" || c.id != "" && e.IDs[c.id] == "" {
			t.Errorf("%s: %+v, want the code %v, a remedy, and the id %s", name, e, c.code, c.id)
		}
	}
	volatile := open(t, terrarium.Options{})
	if _, err := Do(t.Context(), volatile, "replay_turn", json.RawMessage(fmt.Sprintf(`{"turn": %q}`, r.turns[0].ID))); abi.CodeOf(err) != abi.Unsupported {
		t.Errorf("without a session directory: %v", err)
	}
}

// If the file of the recorded module has changed since, the new content is not run
// instead.
func (r *repeatable) missTheirModule(t *testing.T) {
	r = r.in(t)
	mine := filepath.Join(t.TempDir(), "mine.wasm")
	wasm, err := os.ReadFile("../plugins/js/js.wasm")
	noError(t, err)
	noError(t, os.WriteFile(mine, wasm, 0o600))
	do(t, r.tr, "replace_module", fmt.Sprintf(`{"creature": "newt", "module": %q, "force": true}`, mine))
	hash := moduleHash(t, r.tr, "newt")
	wasm, err = os.ReadFile("../plugins/echo/echo.wasm")
	noError(t, err)
	noError(t, os.WriteFile(mine, wasm, 0o600))
	_, err = r.again(admin, r.turns[0].ID, fmt.Sprintf(`, "module": "sha256:%s"`, hash))
	if e := NewErrorRecord(err); abi.CodeOf(err) != abi.Conflict || e.Remedy == "" || e.IDs["module"] == "" {
		t.Errorf("a changed file named by its former hash: %+v", e)
	}
	r.feed("last")
	last := r.handled()
	_, err = r.again(admin, last[len(last)-1].ID, "")
	e := NewErrorRecord(err)
	if abi.CodeOf(err) != abi.Conflict || e.IDs["reason"] != string(replay.NoModule) || e.IDs["module"] != mine || e.IDs["turn"] == "" || e.IDs["creature"] == "" || e.Remedy == "" {
		t.Errorf("a turn on a module that has changed since: %+v", e)
	}
}

// hooked is a host whose instances call a function before each delivery.
type hooked struct {
	abi.Host
	mu   sync.Mutex
	hook func()
}

func newHooked(t *testing.T) *hooked {
	h, err := host.New(context.Background(), host.Options{})
	noError(t, err)
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &hooked{Host: h}
}

func (h *hooked) set(hook func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hook = hook
}

func (h *hooked) call() {
	h.mu.Lock()
	hook := h.hook
	h.mu.Unlock()
	if hook != nil {
		hook()
	}
}

func (h *hooked) Compile(ctx context.Context, wasm []byte) (abi.Module, error) {
	m, err := h.Host.Compile(ctx, wasm)
	if err != nil {
		return nil, err
	}
	return &hookedModule{m, h}, nil
}

type hookedModule struct {
	abi.Module
	h *hooked
}

func (m *hookedModule) Instantiate(ctx context.Context, l *abi.Limits, init abi.Turn) (abi.Instance, error) {
	i, err := m.Module.Instantiate(ctx, l, init)
	if err != nil {
		return nil, err
	}
	return &hookedInstance{i, m.h}, nil
}

type hookedInstance struct {
	abi.Instance
	h *hooked
}

func (i *hookedInstance) Handle(ctx context.Context, t abi.Turn, kind abi.Kind, size int) error {
	i.h.call()
	return i.Instance.Handle(ctx, t, kind, size)
}

// hostileModule writes a module of the gallery to a file.
func hostileModule(t *testing.T, name string) string {
	t.Helper()
	for _, m := range hostile.Modules() {
		if m.Name == name {
			path := filepath.Join(t.TempDir(), name+".wasm")
			noError(t, os.WriteFile(path, m.Build(), 0o600))
			return path
		}
	}
	t.Fatal("the gallery has no", name)
	return ""
}

// A hostile module is bounded by the limits of the creature, and harms neither the session nor
// later calls.
func (r *repeatable) boundHostileModules(t *testing.T) {
	r = r.in(t)
	before := r.everything()
	for name, code := range map[string]string{
		"loop": "out_of_fuel", "loop-in-start": "out_of_fuel", "loop-in-init": "out_of_fuel", "memory-from-start": "limit", "memory-grow": "trapped", "loop-of-stores": "out_of_fuel",
	} {
		out := r.must(admin, r.turns[0].ID, fmt.Sprintf(`, "module": %q`, hostileModule(t, name)))
		if out.Again.Error == nil || out.Again.Error.Code != code || out.Same {
			t.Errorf("%s: %+v, want the code %s", name, out.Again, code)
		}
	}
	if out := r.must(admin, r.turns[0].ID, ""); !out.Same {
		t.Errorf("afterwards the turn differs: %+v", out)
	}
	if after := r.everything(); after != before {
		t.Errorf("hostile modules changed\n%s\nto\n%s", before, after)
	}
}

// A call whose context ends while the guest runs returns the context's error.
func (r *repeatable) areInterrupted(t *testing.T) {
	r, h := r.in(t), r.host
	ctx, cancel := context.WithCancel(t.Context())
	h.set(cancel)
	loop := hostileModule(t, "loop")
	_, err := DoAs(ctx, r.tr, admin, "replay_turn", json.RawMessage(fmt.Sprintf(`{"turn": %q, "module": %q}`, r.turns[0].ID, loop)))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the interrupted call ends with %v", err)
	}
	h.set(nil)
	if out := r.must(admin, r.turns[0].ID, ""); !out.Same {
		t.Errorf("afterwards the turn differs: %+v", out)
	}
}

// At most two turns are run again at a time: a third waits, and can be interrupted.
func (r *repeatable) wait(t *testing.T) {
	r, h := r.in(t), r.host
	inside, leave := make(chan struct{}, 3), make(chan struct{})
	h.set(func() {
		inside <- struct{}{}
		<-leave
	})
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if out, err := r.again(admin, r.turns[0].ID, ""); err != nil || !out.Same {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
	<-inside
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := DoAs(ctx, r.tr, admin, "replay_turn", json.RawMessage(fmt.Sprintf(`{"turn": %q}`, r.turns[0].ID))); !errors.Is(err, context.Canceled) {
		t.Errorf("a third call ends with %v", err)
	}
	h.set(nil)
	close(leave)
	both.Wait()
	if len(inside) != 0 {
		t.Error("the third call has run a guest")
	}
}

// While a turn is run again, its creature handles messages, gets another module and is removed.
func (r *repeatable) runWhileTheSessionChanges(t *testing.T) {
	r, h := r.in(t), r.host
	var changes sync.Once
	h.set(func() {
		changes.Do(func() {
			h.set(nil) // the engine uses the same host
			r.feed("more", "boom again")
			do(t, r.tr, "replace_module", `{"creature": "newt", "module": "builtin:echo", "force": true}`)
			do(t, r.tr, "add_creature", `{"name": "friend", "module": "builtin:echo"}`)
			do(t, r.tr, "connect", `{"from": "newt", "to": "friend"}`)
			do(t, r.tr, "remove_creature", `{"creature": "newt"}`)
		})
	})
	for i := range r.turns {
		if out := r.must(admin, r.turns[i].ID, ""); !out.Same || out.Again.Module != "builtin:js" {
			t.Errorf("turn %d: %+v", i, out)
		}
	}
	// And without order.
	var all sync.WaitGroup
	for i := range r.turns {
		all.Go(func() {
			for range 3 {
				if out, err := r.again(admin, r.turns[i].ID, ""); err != nil || !out.Same {
					t.Errorf("turn %d: %+v, %v", i, out, err)
				}
			}
		})
	}
	for i := range 20 {
		do(t, r.tr, "send_to", fmt.Sprintf(`{"creature": "friend", "payload": "%d"}`, i))
		do(t, r.tr, "add_creature", fmt.Sprintf(`{"name": "w%d", "module": "builtin:echo", "join": "friend"}`, i))
	}
	all.Wait()
}

// An answer is bounded, and has the first difference.
func TestReplayTurnAnswersAreBounded(t *testing.T) {
	out := &ReplayTurnResult{First: 2500}
	for i := range 3000 {
		e := func() *ReplayEffect {
			return &ReplayEffect{Kind: replay.EffectLog, Target: fmt.Sprint(i), Headers: map[string]string{"name": "value"}, Payload: []byte(strings.Repeat("é", 50<<10)), Size: 100 << 10}
		}
		out.Rows = append(out.Rows, ReplayRow{Same: i != 2500, Then: e(), Again: e()})
	}
	out.bound()
	if len(out.Rows) != maxReplayRows || out.More != 3000-maxReplayRows || out.Rows[out.First].Same || out.Rows[out.First].Then.Target != "2500" {
		t.Errorf("%d rows, %d more, the first difference is %d", len(out.Rows), out.More, out.First)
	}
	if n := len(out.Rows[out.First].Again.Payload); n < maxReplayPayload/2 {
		t.Errorf("of the first difference %d bytes are left", n)
	}
	size := 0
	for _, row := range out.Rows {
		for _, e := range []*ReplayEffect{row.Then, row.Again} {
			if size += len(e.Payload); len(e.Payload) > maxReplayPayload || !e.Cut || e.Size != 100<<10 || !utf8.Valid(e.Payload) {
				t.Fatalf("an effect has %d bytes, cut %v, size %d", len(e.Payload), e.Cut, e.Size)
			}
		}
	}
	if size > maxReplayBytes || size < maxReplayBytes/2 {
		t.Errorf("the payloads have %d bytes", size)
	}
	small := &ReplayTurnResult{First: -1, Rows: []ReplayRow{{Same: true, Then: &ReplayEffect{Payload: []byte("a")}}}}
	small.bound()
	if small.More != 0 || small.First != -1 || small.Rows[0].Then.Cut || string(small.Rows[0].Then.Payload) != "a" {
		t.Errorf("a small answer has become %+v", small)
	}
}
