//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/capability/llmcap"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// TestKillAgents runs examples/agents and kills it several times while the lead works on a
// question. It continues each time: the lead still spawns, wires, asks and removes each
// specialist once, and gives the same answer as without kills. The replay needs no model.
func TestKillAgents(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]bool{"scripted": false, "server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgents(t, server)
			a.once(a.run("undisturbed", a.file)...)
			want := a.answers("undisturbed")
			if len(want) != len(a.questions) {
				t.Fatalf("the undisturbed run has answered %q", want)
			}
			seed := seeded.For(t.Name())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			a.once(a.run("killed", os.DevNull)...)
			asked := 0
			// The budget of the example is enough for twice as many kills. An interrupted
			// request keeps what it has reserved.
			for left := min(kills(t, 6), 30); left > 0; asked++ {
				a.once("send", "killed", "questions", a.questions[asked%len(a.questions)])
				for range min(left, 1+random.IntN(2)) {
					if left--; server {
						a.killAtRequest(1+random.IntN(2), random.IntN(2) == 0)
					} else {
						a.killAtMessage(random.IntN(messagesOfQuestion))
					}
				}
				a.once(append(a.resume(), "--exit-when-idle")...)
			}
			a.check("killed", asked, want)
			a.checkServer()
		})
	}
}

// TestResumeAgentsWithoutKey resumes a session with a specialist, first without the key of the
// model: nothing is resumed, and the error names the variable.
func TestResumeAgentsWithoutKey(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	a := newAgents(t, true)
	a.once(a.run("killed", os.DevNull)...)
	a.once("send", "killed", "questions", a.questions[0])
	a.killAtRequest(2, true) // in the turn that sends it, the lead has spawned the specialist
	cmd := a.command("resume", "killed", "--topology", "last", "--exit-when-idle", a.variables[0], a.variables[1])
	var stderr strings.Builder
	cmd.Stderr = &stderr
	var ended *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &ended) || ended.ExitCode() <= 0 {
		t.Errorf("without the key it ends with %v", err)
	}
	for _, want := range []string{"astronomer", "llm.main", "var.key", "not stored"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("standard error does not say %q:\n%s", want, &stderr)
		}
	}
	a.once(append(a.resume(), "--exit-when-idle")...)
	if got := a.answers("killed"); len(got) != 1 || !strings.Contains(got[0], "384,400 km") {
		t.Errorf("with the key, the answers are %q", got)
	}
}

// agents runs examples/agents in a folder, with one cache of compiled code.
type agents struct {
	t           *testing.T
	dir         string
	example     string
	file        string // of questions
	questions   []string
	variables   []string // as flags
	environment []string
	close       func() // of the server
	server      *scriptedServer
}

// messagesOfQuestion are the messages for the lead while it works on a question, and its answer.
const messagesOfQuestion = 6

// agentsKey is a key that the server requires, and that no session stores.
const agentsKey = "the key of the test of agents"

func newAgents(t *testing.T, server bool) *agents {
	t.Helper()
	example, err := filepath.Abs("../../examples/agents")
	if err != nil {
		t.Fatal(err)
	}
	a := &agents{t: t, dir: t.TempDir(), example: example, file: filepath.Join(example, "questions.txt"), close: func() {}}
	questions, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	a.questions = strings.Split(strings.TrimSpace(string(questions)), "\n")
	a.environment = append(os.Environ(), "TMPDIR="+t.TempDir(), cacheVariable+"="+filepath.Join(t.TempDir(), "compiled"), "XDG_CONFIG_HOME="+t.TempDir())
	if server {
		a.server = newScriptedServer(t, filepath.Join(example, "model.json"))
		s := httptest.NewServer(a.server)
		a.close = sync.OnceFunc(s.Close)
		t.Cleanup(a.close)
		a.variables = []string{"--var", "endpoint=" + s.URL + "/v1", "--var", "key=" + agentsKey}
	}
	return a
}

func (a *agents) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program(), args...)
	cmd.Dir, cmd.Env = a.dir, a.environment
	return cmd
}

// once runs a command to its end and returns its output.
func (a *agents) once(args ...string) string {
	a.t.Helper()
	cmd := a.command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		a.t.Fatalf("terrarium %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

func (a *agents) run(session, questions string) []string {
	return slices.Concat([]string{"run", a.example, "--session", session, "--input", "questions=" + questions, "--exit-when-idle"}, a.variables)
}

func (a *agents) resume() []string {
	return slices.Concat([]string{"resume", "killed", "--topology", "last"}, a.variables)
}

// killAtMessage resumes the session and kills it when its store has that many more messages.
// The rules answer in the process itself, so nothing outside knows how far it is.
func (a *agents) killAtMessage(more int) {
	a.t.Helper()
	v, err := sqlitestore.OpenReadOnly(a.t.Context(), filepath.Join(a.dir, "killed"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer v.Close()
	before, _ := a.progress(v)
	p := launch(a.t, a.command(a.resume()...))
	var now int
	var done bool
	if !soonEvery(time.Millisecond, func() bool {
		now, done = a.progress(v)
		return done || now-before >= more
	}) {
		a.t.Fatalf("the session does not go on:\n%s", p.stderr)
	}
	p.cmd.Process.Kill()
	p.wait()
	now, done = a.progress(v)
	a.t.Logf("killed after %d messages, which should be %d; answered: %t", now-before, more, done)
}

// progress counts the messages for the lead and the answers in the store, and reports whether
// every question is answered.
func (a *agents) progress(v *sqlitestore.View) (messages int, done bool) {
	a.t.Helper()
	graphs, problems, err := v.Live(a.t.Context())
	if err = errors.Join(append(problems, err)...); err != nil {
		a.t.Fatal(err)
	}
	heads := map[string]int{} // by the name of a channel, or of the creature that has the inbox
	for i := range graphs {
		names := map[journal.ChannelID]string{}
		for _, ch := range graphs[i].Channels {
			names[ch.ID] = ch.Name
		}
		for _, c := range graphs[i].Creatures {
			names[journal.InboxOf(c.ID)] = c.Name
		}
		for _, h := range graphs[i].Heads {
			heads[names[h.Channel]] = int(h.Seq)
		}
	}
	return heads["lead"] + heads["answers"], heads["answers"] == heads["questions"]
}

// killAtRequest resumes the session, and lets the server kill it at a request that it has not
// seen before, either before it answers or after.
func (a *agents) killAtRequest(n int, early bool) {
	a.t.Helper()
	kill := a.server.killAfter(n, early)
	p := launch(a.t, a.command(a.resume()...))
	kill <- p.cmd.Process.Kill
	p.wait()
	a.t.Logf("killed at request %d, before the answer: %t", n, early)
	if a.server.waits() {
		a.t.Errorf("it has ended before request %d:\n%s", n, p.stderr)
	}
}

// log returns the events of some kinds of a session.
func (a *agents) log(session string, kinds ...string) (out []loggedEvent) {
	a.t.Helper()
	args := []string{"events", session, "-o", "json"}
	for _, k := range kinds {
		args = append(args, "--kind", k)
	}
	for line := range strings.Lines(a.once(args...)) {
		var ev loggedEvent
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			a.t.Fatal(err)
		}
		out = append(out, ev)
	}
	return out
}

type loggedEvent struct {
	ID, Kind, Creature, Turn string
	Headers                  map[string]string
	Payload                  json.RawMessage
}

func (a *agents) answers(session string) (out []string) {
	a.t.Helper()
	for _, ev := range a.log(session, "channel_message") {
		if ev.Creature == "" {
			continue // a question
		}
		var text string
		if err := json.Unmarshal(ev.Payload, &text); err != nil {
			a.t.Fatal(err)
		}
		out = append(out, text)
	}
	return out
}

// check proves that a session did everything once.
func (a *agents) check(session string, asked int, want []string) {
	a.t.Helper()
	answers := a.answers(session)
	if len(answers) != asked {
		a.t.Errorf("it has answered %q, %d questions were asked", answers, asked)
	}
	for i, got := range answers {
		if got != want[i%len(want)] {
			a.t.Errorf("answer %d is %q, want %q", i+1, got, want[i%len(want)])
		}
	}
	count := map[string]int{}
	for _, ev := range a.log(session, "creature_started", "creature_stopped", "output_wire_added", "output_wire_removed", "direct_message", "output", "result") {
		var p struct {
			Name, Call string
		}
		_ = json.Unmarshal(ev.Payload, &p) // that of a message is a text
		switch {
		case ev.Kind == "creature_started" || ev.Kind == "creature_stopped":
			if p.Call == "tool" {
				count[ev.Kind+" "+p.Name]++
			}
		case ev.Kind == "result":
			count["request "+ev.Headers["terrarium-request"]]++
		default:
			count[ev.Kind]++
		}
	}
	expected := map[string]int{
		"output_wire_added": asked, "output_wire_removed": asked, "direct_message": asked,
		"output": 2 * asked, // of the specialist and of the lead
	}
	for i, name := range []string{"astronomer", "baker"} {
		if times := (asked + 1 - i) / 2; times > 0 {
			expected["creature_started "+name], expected["creature_stopped "+name] = times, times
		}
	}
	for _, ev := range a.log(session, "outbound_request") {
		expected["request "+ev.ID] = 1
	}
	for what := range expected {
		if count[what] != expected[what] {
			a.t.Errorf("%s: %d times, want %d", what, count[what], expected[what])
		}
	}
	for what := range count {
		if expected[what] == 0 {
			a.t.Errorf("%s: %d times, want none", what, count[what])
		}
	}
	a.close()
	if text := a.once("replay", session, "--all"); !strings.Contains(text, "and none differs") {
		a.t.Errorf("the replay says\n%s", text)
	}
}

// checkServer proves that the server got no request but those in the logs, each of them at
// least once, and always as it is in the log.
func (a *agents) checkServer() {
	a.t.Helper()
	if a.server == nil {
		return
	}
	logged := map[string]bool{}
	for _, session := range []string{"undisturbed", "killed"} {
		for _, ev := range a.log(session, "outbound_request") {
			logged[ev.ID] = true
		}
	}
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	for key, bodies := range a.server.got {
		if !logged[key] {
			a.t.Errorf("the server got the request %s, which is not in the log", key)
		}
		if slices.ContainsFunc(bodies, func(b string) bool { return b != bodies[0] }) {
			a.t.Errorf("the server got different requests with the key %s", key)
		}
	}
	for key := range logged {
		if len(a.server.got[key]) == 0 {
			a.t.Errorf("the server did not get the request %s", key)
		}
	}
	for _, problem := range a.server.problems {
		a.t.Error(problem)
	}
}

// scriptedServer answers by the rules of a script, with the chat completions of OpenAI.
type scriptedServer struct {
	grant capability.Grant

	mu       sync.Mutex
	after    int                 // requests with new keys until it kills; 0: never
	early    bool                // it kills before it answers
	kill     chan func() error   // kills
	got      map[string][]string // bodies, by the key of the request
	problems []string
}

func newScriptedServer(t *testing.T, script string) *scriptedServer {
	t.Helper()
	rules, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal(map[string]any{"endpoint": "http://127.0.0.1/v1", "models": []string{"scripted"}, "scripted": string(rules)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := llmcap.New().Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	return &scriptedServer{grant: g, got: map[string][]string{}}
}

// killAfter makes the server kill at the nth request from now that it has not seen before. It
// takes the function that kills from the channel.
func (s *scriptedServer) killAfter(n int, early bool) chan<- func() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after, s.early, s.kill = n, early, make(chan func() error, 1)
	return s.kill
}

// waits reports whether it has not killed yet.
func (s *scriptedServer) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.after > 0
}

func (s *scriptedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program was killed
	}
	key := r.Header.Get("Idempotency-Key")
	problem := ""
	if got := r.Header.Get("Authorization"); got != "Bearer "+agentsKey {
		problem = fmt.Sprintf("the request %s has the authorization %q", key, got)
	}
	answer, err := s.answer(r, body)
	if err != nil {
		problem = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kills := false
	if len(s.got[key]) == 0 && s.after > 0 {
		s.after--
		kills = s.after == 0
	}
	s.got[key] = append(s.got[key], string(body))
	if kills && s.early {
		s.kills()
		return
	}
	if problem != "" {
		s.problems = append(s.problems, problem)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // the program may have been killed
	if kills {
		_ = http.NewResponseController(w).Flush()
		s.kills()
	}
}

func (s *scriptedServer) kills() {
	if err := (<-s.kill)(); err != nil {
		s.problems = append(s.problems, "it could not be killed: "+err.Error())
	}
}

// answer applies the rules. A request to a server has members that a creature does not send.
func (s *scriptedServer) answer(r *http.Request, body []byte) ([]byte, error) {
	var request map[string]json.RawMessage
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	delete(request, "stream")
	delete(request, "stream_options")
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	q := capability.Request{Body: body}
	if err := s.grant.Check(q); err != nil {
		return nil, err
	}
	result := s.grant.Do(r.Context(), capability.Call{Request: q, Attempt: 1})
	if result.Code != abi.OK {
		return nil, fmt.Errorf("%s: %s", result.Code, result.Text)
	}
	var said struct {
		Message json.RawMessage `json:"message"`
		Finish  string          `json:"finish_reason"`
		Usage   json.RawMessage `json:"usage"`
	}
	if err := json.Unmarshal(result.Payload, &said); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "message": said.Message, "finish_reason": said.Finish}}, "usage": said.Usage})
}
