package pagetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/serve"
)

// A pond is a server of the page whose creatures are made up, so that every status and
// every failure can be shown at will. The protocol is that of package serve; the flows of
// live_test.go run against the real one.
type pond struct {
	t      *testing.T
	server *httptest.Server

	mu        sync.Mutex
	graphs    []*graph
	letters   []object
	approvals []object
	answers   []string      // to approvals
	modules   []string      // on which turns were run again
	hold      chan struct{} // if set, a turn is run again when it is closed
	sessions  []object
	log       []object
	problems  []object
	streams   map[chan object]bool
	cut       chan struct{} // closed to end the streams
	down      bool          // answers nothing
	refuse    *refusal      // answers every operation
	calls     []string      // operations that were called, but status
	next      int
	now       func() time.Time
}

type object = map[string]any

type refusal struct {
	only   string // operation; all and the stream, if empty
	status int
	code   string
	detail string
	remedy string
}

type graph struct {
	id        string
	creatures []object
	channels  []object
	wires     []object
}

func newPond(t *testing.T) *pond {
	p := &pond{t: t, streams: map[chan object]bool{}, cut: make(chan struct{}), now: time.Now}
	mux := http.NewServeMux()
	mux.Handle("GET /", serve.NewHandler(nil, serve.Options{})) // only for the files of the page
	mux.HandleFunc("GET /api/v1/events", p.stream)
	mux.HandleFunc("POST /api/v1/{operation}", p.operation)
	p.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		p.end()
		p.server.Close()
	})
	return p
}

// policies are those that have decided.
func (p *pond) policies() []object {
	list, seen := []object{}, map[any]bool{}
	for _, e := range p.log {
		said, _ := e["payload"].(object)
		if e["kind"] != "policy_denied" || seen[said["policy"]] {
			continue
		}
		seen[said["policy"]] = true
		list = append(list, object{
			"name": said["policy"], "deployment": "rescue", "recipe": "rescue/main.hcl", "where": said["where"], "hash": strings.Repeat("5eed", 16),
			"event": said["event"], "mode": "validate", "enforce": "deny", "on_error": "deny", "channels": []string{"channel.calls"}, "graphs": []string{},
		})
	}
	return list
}

// end ends all streams.
func (p *pond) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.cut)
	p.cut = make(chan struct{})
}

func (p *pond) stream(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	cut, down := p.cut, p.down || p.refuse != nil && p.refuse.only == ""
	events := make(chan object, 4096)
	p.streams[events] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.streams, events)
		p.mu.Unlock()
	}()
	if down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 1000\n\n")
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	for {
		select {
		case e := <-events:
			if err := writeEvent(w, e); err != nil {
				return
			}
			_ = flush.Flush()
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func writeEvent(w http.ResponseWriter, e object) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if cursor, _ := e["cursor"].(string); cursor != "" {
		fmt.Fprintf(w, "id: %s\n", cursor)
	}
	_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["kind"], data)
	return err
}

func (p *pond) operation(w http.ResponseWriter, r *http.Request) {
	var args object
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name := r.PathValue("operation")
	p.mu.Lock()
	hold := p.hold
	p.mu.Unlock()
	if hold != nil && name == "replay_turn" {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if p.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if f := p.refuse; f != nil && (f.only == "" || f.only == name) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(f.status)
		_ = json.NewEncoder(w).Encode(object{"status": f.status, "title": f.code, "code": f.code, "detail": f.detail, "remedy": f.remedy})
		return
	}
	if name != "status" && name != "history" {
		p.calls = append(p.calls, name)
	}
	_ = json.NewEncoder(w).Encode(p.answer(name, args))
}

func (p *pond) answer(name string, args object) object {
	switch name {
	case "status":
		graphs := []object{}
		for _, g := range p.graphs {
			graphs = append(graphs, object{
				"id": g.id, "session": "01a2-" + g.id, "store_path": "/data/pond/stores/" + g.id + ".db", "complete": true, "durability": "normal",
				"creatures": g.creatures, "channels": g.channels, "wires": g.wires,
			})
		}
		return object{"graphs": graphs, "problems": p.problems}
	case "history":
		return object{"events": p.history(args)}
	case "dead_letters":
		list := []object{}
		for _, l := range p.letters {
			if l["in"] == args["graph"] && (args["creature"] == nil || args["creature"] == l["creature"]) {
				list = append(list, l)
			}
		}
		return object{"dead_letters": list}
	case "policies":
		return object{"policies": p.policies()}
	case "approvals":
		return object{"approvals": p.approvals}
	case "approve", "deny":
		p.approvals = slices.DeleteFunc(p.approvals, func(a object) bool { return a["id"] == args["approval"] })
		p.answers = append(p.answers, fmt.Sprint(name, " ", args["approval"], " ", args["reason"]))
		return object{"approval": args["approval"], "decision": "approved"}
	case "redeliver":
		p.letters = slices.DeleteFunc(p.letters, func(l object) bool { return l["id"] == args["message"] })
		return object{"message": "again", "seq": 1}
	case "start_creature":
		p.creature(args["creature"].(string))["state"] = "running"
		return object{"delta": object{"kind": "none"}}
	case "sessions":
		return object{"sessions": p.sessions}
	case "awareness":
		return object{"revision": 1, "json": object{"self": object{"id": args["creature"]}}}
	case "state":
		return object{"state": object{"route/pier": secret, "count": "17"}}
	case "replay_turn":
		return p.again(args)
	case "search":
		return object{"found": []object{}}
	}
	return object{}
}

func (p *pond) history(args object) []object {
	list := []object{}
	kinds, _ := args["kinds"].([]any)
	after, _ := args["after"].(string)
	seen := after == ""
	for _, e := range p.log {
		if !seen {
			seen = e["id"] == after
			continue
		}
		if (args["graph"] == nil || e["graph"] == args["graph"]) && (kinds == nil || slices.Contains(kinds, e["kind"])) && (args["creature"] == nil || args["creature"] == e["creature"]) {
			list = append(list, e)
		}
	}
	return list
}

func (p *pond) creature(id string) object {
	for _, g := range p.graphs {
		for _, c := range g.creatures {
			if c["id"] == id || c["name"] == id {
				return c
			}
		}
	}
	p.t.Fatalf("no creature %s", id)
	return nil
}

// emit logs an event and sends it to all streams.
func (p *pond) emit(kind, graph, creature string, payload any, more ...object) object {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.event(p.now(), kind, graph, creature, payload, more...)
	for s := range p.streams {
		select {
		case s <- e:
		default: // a slow reader; the tests do not have one
		}
	}
	return e
}

func (p *pond) event(at time.Time, kind, graph, creature string, payload any, more ...object) object {
	p.next++
	e := object{"id": fmt.Sprintf("%032x-%d", 7, p.next), "ts": at.UTC().Format(time.RFC3339Nano), "kind": kind, "graph": graph, "cursor": fmt.Sprintf("cursor-%d", p.next)}
	if creature != "" {
		e["creature"] = creature
	}
	if payload != nil {
		e["payload"] = payload
	}
	for _, m := range more {
		for k, v := range m {
			e[k] = v
		}
	}
	p.log = append(p.log, e)
	return e
}

// grow adds a graph from lines: "in CHANNEL TO,…", "out CHANNEL FROM,…", "CHANNEL: FROM,… > TO,…",
// "wire FROM TO", "open CHANNEL FROM". Creatures appear in the order of their mention.
func (p *pond) grow(id, name, text string) *graph {
	g := &graph{id: id, creatures: []object{}, channels: []object{}, wires: []object{}}
	p.graphs = append(p.graphs, g)
	at := map[string]object{}
	all := func(names string) []string {
		var ids []string
		for n := range strings.SplitSeq(names, ",") {
			if n = strings.TrimSpace(n); n == "" {
				continue
			}
			if at[n] == nil {
				at[n] = p.creatureOf(id, name, n)
				g.creatures = append(g.creatures, at[n])
			}
			ids = append(ids, at[n]["id"].(string))
		}
		return ids
	}
	channel := func(name, address string, from, to []string) {
		c := object{"id": "h-" + id + "-" + name, "name": name, "senders": append([]string{}, from...), "listeners": append([]string{}, to...), "head": 7}
		if address != "" {
			c["address"] = address
		}
		g.channels = append(g.channels, c)
		join(at, from, "send", c["id"].(string))
		join(at, to, "listen", c["id"].(string))
	}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch words[0] {
		case "in":
			channel(words[1], "channel."+words[1], nil, all(words[2]))
		case "out":
			channel(words[1], "channel."+words[1], all(words[2]), nil)
		case "open":
			channel(words[1], "", all(words[2]), nil)
		case "wire":
			from, to := all(words[1]), all(words[2])
			for i, f := range from {
				g.wires = append(g.wires, object{"wire": fmt.Sprintf("w-%s-%s-%d", id, words[2], i), "from": f, "to": to[0], "with_content": true})
			}
		default:
			ends := strings.Split(line[strings.Index(line, ":")+1:], ">")
			channel(strings.TrimSuffix(words[0], ":"), "", all(ends[0]), all(ends[1]))
		}
	}
	return g
}

func join(at map[string]object, ids []string, how, channel string) {
	for _, c := range at {
		if slices.Contains(ids, c["id"].(string)) {
			c[how] = append(c[how].([]string), channel)
		}
	}
}

func (p *pond) creatureOf(graph, deployment, name string) object {
	species, _, _ := strings.Cut(name, "-")
	c := object{
		"id": "c-" + graph + "-" + name, "name": name, "deployment": deployment, "state": "running", "privileged": false, "root": false,
		"listen": []string{}, "send": []string{}, "aliases": object{"listen": object{}, "send": object{}}, "cursors": object{},
		"incarnation": 1, "instance_starts": 1, "module": species + ".wasm", "module_sha256": strings.Repeat("52b1ed13", 8), "memory_bytes": 1 << 20,
		"limits":   object{"memory": 64 << 20, "fuel": 1000000000, "mailbox": 1024, "state": 16 << 20, "deadline": "1s"},
		"counters": object{"turns": 431, "failures": 0, "sent": 345, "dead_letters": 0, "denied": 0, "fuel": 12},
	}
	if strings.Contains(name, "-") {
		c["species"] = species
	}
	return c
}

// secret is the text of payloads, which must not be in the page before a reader requests it.
const secret = "PAYLOAD-7f3a"

// newRescuePond is the pond of the pictures: three graphs, 40 creatures, every status.
func newRescuePond(t *testing.T) *pond {
	p := newPond(t)
	p.grow("gr5mz", "north", `
		in calls scouts,alarm,triage
		found: scouts > dogs
		seen: dogs > ledger
		out rescues ledger
		wire alarm envoy
		open help alarm
		wire envoy bulletin
		out bulletin bulletin
		hurt: triage > medic
		cured: medic > log-north
		in forecast weather-eye
		roads: weather-eye > sledge-1
		relay: sledge-1 > sledge-2`)
	p.grow("gae3h", "south", `
		in calls desk
		flights: desk > helicopter
		wire helicopter pier-sign
		out sign pier-sign
		in tide tide-watch
		in berths harbour
		launches: tide-watch,harbour > boat-1,boat-2,boat-3
		returns: boat-1,boat-2 > returns-log
		out report returns-log`)
	p.grow("gwj60", "crew", `
		in tasks splitter
		parts: splitter > foreman
		crew: foreman > clerk-1,clerk-2,clerk-3,clerk-4,clerk-5,clerk-6,clerk-7,clerk-8
		wire clerk-1,clerk-2,clerk-3,clerk-4,clerk-5,clerk-6,clerk-7,clerk-8 ledger
		out results ledger
		in lines writer,tidy
		drafts: writer > reviewer.ann,reviewer.bob,reviewer.eve
		wire reviewer.ann,reviewer.bob,reviewer.eve lead
		out digest lead
		sightings: tidy > spotter
		amphibians: spotter > census
		out report census`)
	waiting := map[string]int{"scouts": 2, "triage": 11, "medic": 37, "helicopter": 3, "harbour": 4, "boat-2": 128, "foreman": 6, "clerk-1": 1, "clerk-3": 44, "clerk-4": 2, "clerk-6": 1, "clerk-7": 3, "reviewer.eve": 9}
	for name, n := range waiting {
		p.creature(name)["cursors"] = object{"inbox": object{"seq": 1, "pending": n}}
	}
	for _, name := range []string{"envoy", "foreman"} {
		p.creature(name)["root"], p.creature(name)["privileged"] = true, true
	}
	p.creature("medic")["state"] = "backing_off"
	p.creature("boat-2")["state"] = "quarantined"
	p.approvals = []object{p.question("q1"), p.question("q2")}
	p.creature("medic")["approvals"] = len(p.approvals)
	p.creature("boat-2")["memory_bytes"] = 46 << 20
	p.creature("boat-2")["counters"] = object{"turns": 5431, "failures": 6, "sent": 4345, "dead_letters": 6}
	p.creature("clerk-3")["counters"] = object{"turns": 731, "failures": 2, "sent": 345, "dead_letters": 2}
	p.creature("boat-3")["state"] = "stopped"
	p.past()
	return p
}

// question is what the medic waits for.
func (p *pond) question(id string) object {
	return object{
		"id": id, "graph": "gr5mz", "creature": p.creature("medic")["id"], "name": "medic", "event": "send", "subject": "a message on orders", "policy": "careful",
		"where": "rescue.hcl:14", "reason": "this cannot be undone", "since": "2026-11-24T10:00:00Z", "deadline": "2026-11-26T10:00:00Z", "otherwise": "denied",
		"behind": 3, "content": secret, "size": len(secret), "hash": "5c",
	}
}

const trap = "memory access out of bounds: read of 4 bytes at 0x2f41a0, memory ends at 0x2e0000 (in plan_route at boat.c:118:9 < on_message at boat.c:151:3 < creature_handle at boat.c:170:1)"

// past fills the log with what the pictures show.
func (p *pond) past() {
	now := p.now()
	p.event(now.Add(-14*time.Minute), "topology_changed", "gr5mz", "", object{"kind": "merge", "old_graphs": []string{"gr5mz", "gae3h"}, "new_graphs": []string{"gr5mz"}, "affected": []string{}, "renamed": []object{}})
	p.event(now.Add(-70*time.Second), "topology_changed", "gr5mz", "", object{"kind": "split", "old_graphs": []string{"gr5mz"}, "new_graphs": []string{"gr5mz", "gae3h"}, "affected": []string{}, "renamed": []object{}})
	boat, launches := "c-gae3h-boat-2", "h-gae3h-launches"
	for i := range 6 {
		at := now.Add(time.Duration(i-8) * 10 * time.Second)
		message := p.event(at, "channel_message", "gae3h", "c-gae3h-harbour", secret, object{"channel": launches, "seq": 83 + i})
		p.event(at.Add(29*time.Millisecond), "log", "gae3h", boat, object{"level": "warn", "text": "tide table ends at 40, asked for 52"})
		failed := p.event(at.Add(41*time.Millisecond), "turn_failed", "gae3h", boat, object{"kind": "message", "fuel": 61204772, "code": "trapped", "error": trap}, object{"channel": launches, "seq": 83 + i, "attempt": 6, "cause": message["id"]})
		failed["turn"], p.log[len(p.log)-2]["turn"] = failed["id"], failed["id"]
		letter := p.event(at.Add(42*time.Millisecond), "dead_letter", "gae3h", boat, object{"message": message["id"], "reason": "trapped", "creature": boat, "channel": launches, "seq": 83 + i, "attempts": 6, "error": trap})
		p.letters = append(p.letters, object{"in": "gae3h", "id": letter["id"], "ts": letter["ts"], "creature": boat, "message": message["id"], "kind": "channel_message", "channel": launches, "seq": 83 + i,
			"reason": "trapped", "attempts": 6, "error": trap, "last_words": "tide table ends at 40, asked for 52", "payload": secret})
	}
	p.event(now.Add(-30*time.Second), "creature_quarantined", "gae3h", boat, object{"kind": "quarantine", "code": "trapped", "error": trap})
	for i := range 2 {
		p.letters = append(p.letters, object{"in": "gwj60", "id": fmt.Sprint("letter-", i), "ts": now.Add(-time.Minute).UTC().Format(time.RFC3339Nano), "creature": "c-gwj60-clerk-3", "message": "m", "kind": "direct_message", "channel": "inbox:c-gwj60-clerk-3", "seq": 41 + 7*i,
			"reason": "out_of_fuel", "attempts": 1, "error": "the guest used up the limit fuel, 1,000,000,000 units; raise the limit fuel, or do less in one turn", "payload": secret})
	}
	for i := range 96 {
		for k := range 12 + i*7%11 + i/70*9 {
			at := now.Add(-time.Duration(96-i)*12500*time.Millisecond + time.Duration(k)*500*time.Millisecond)
			p.event(at, "turn_ended", "gwj60", fmt.Sprint("c-gwj60-clerk-", 1+k%8), object{"kind": "message", "fuel": 2996})
		}
	}
	p.problems = []object{{"code": "storage", "message": "the store of session 01a2…77e0 was set aside: its file ends in the middle of a page", "remedy": "copy the file from a backup and resume it", "ids": object{"session": "01a20dcb-2094"}}}
	p.sessions = lineageOf(now)
}

func lineageOf(now time.Time) []object {
	at := func(d time.Duration) string { return now.Add(-d).UTC().Format(time.RFC3339Nano) }
	one := func(id, graph, deployment, made string, live bool, ago time.Duration, events int, parents ...string) object {
		o := object{"session": "01a20dcb-" + id, "graph": graph, "deployment": deployment, "live": live, "complete": true, "durability": "normal", "created": at(ago), "parents": append([]string{}, parents...), "events": events, "bytes": 164 << 10}
		if made != "" {
			o["made_by"], o[made+"_at"] = made, at(ago)
		}
		if made == "merge" {
			o["merged_at"] = at(ago)
		}
		return o
	}
	session := func(id string) string { return "01a20dcb-" + id }
	return []object{
		one("5bbc", "gr5mz", "north", "", false, 290*time.Minute, 20),
		one("13c7", "gae3h", "south", "", false, 288*time.Minute, 15),
		one("d19e", "gwj60", "crew", "", false, 281*time.Minute, 388),
		one("77e0", "gzz11", "survey", "", false, 277*time.Minute, 97),
		one("ec05", "gwj60", "crew, survey", "merge", true, 268*time.Minute, 1413, session("d19e"), session("77e0")),
		one("319c", "gr5mz", "north, south", "merge", false, 14*time.Minute, 66, session("5bbc"), session("13c7")),
		one("a0b1", "gae3h", "south", "split", true, 70*time.Second, 78, session("319c")),
		one("a4b6", "gr5mz", "north", "split", true, 70*time.Second, 76, session("319c")),
	}
}

// traffic emits messages and turns, as if the last ten seconds had been busy.
func (p *pond) traffic() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	rates := map[string]int{"calls": 9, "tasks": 24, "parts": 24, "crew": 23, "results": 23, "lines": 12, "drafts": 12, "sightings": 9, "report": 5, "digest": 8, "launches": 5, "help": 0, "returns": 1, "relay": 1}
	for _, g := range p.graphs {
		for _, c := range g.channels {
			n, known := rates[c["name"].(string)]
			if !known {
				n = 4
			}
			for i := range n * 10 {
				p.send(object{"ts": now.Add(-time.Duration(i) * 10 * time.Second / time.Duration(n*10)).UTC().Format(time.RFC3339Nano), "kind": "channel_message", "graph": g.id, "channel": c["id"], "seq": 1, "channel_seq": 8 + i})
			}
		}
		for i, c := range g.creatures {
			if c["state"] != "running" {
				continue
			}
			for k := range 1 + i%2 {
				p.send(object{"ts": now.Add(-time.Duration(k+i) * 330 * time.Millisecond).UTC().Format(time.RFC3339Nano), "kind": "turn_ended", "graph": g.id, "creature": c["id"], "payload": object{"kind": "message", "fuel": 2996}, "id": fmt.Sprintf("%032x-%d%d", 9, i, k)})
			}
		}
		if g.id == "gwj60" {
			p.send(object{"ts": now.UTC().Format(time.RFC3339Nano), "kind": "turn_failed", "graph": g.id, "creature": "c-gwj60-clerk-3", "payload": object{"kind": "message", "fuel": 1000000000, "code": "out_of_fuel", "error": "the guest used up the limit fuel"}, "id": fmt.Sprintf("%032x-1", 9)})
		}
		for i, w := range g.wires {
			for k := range 30 + i {
				p.send(object{"ts": now.Add(-time.Duration(k) * 300 * time.Millisecond).UTC().Format(time.RFC3339Nano), "kind": "wired_output", "graph": g.id, "creature": w["to"], "headers": object{"terrarium-wire": w["wire"]}})
			}
		}
	}
}

func (p *pond) send(e object) {
	for s := range p.streams {
		select {
		case s <- e:
		default:
		}
	}
}

// merge makes south a part of north: alarm sends on help to helicopter.
func (p *pond) merge() {
	p.mu.Lock()
	north, south := p.graphs[0], p.graphs[1]
	affected := []string{}
	for _, c := range south.creatures {
		affected = append(affected, c["id"].(string))
	}
	for _, c := range south.channels {
		if c["name"] == "calls" {
			c["name"] = "calls~2"
		}
	}
	north.creatures = append(north.creatures, south.creatures...)
	north.channels = append(north.channels, south.channels...)
	north.wires = append(north.wires, south.wires...)
	for _, c := range north.channels {
		if c["name"] == "help" {
			c["listeners"] = []string{"c-gae3h-helicopter"}
		}
	}
	p.graphs = slices.Delete(p.graphs, 1, 2)
	p.mu.Unlock()
	p.emit("topology_changed", "gr5mz", "", object{
		"kind": "merge", "old_graphs": []string{"gr5mz", "gae3h"}, "new_graphs": []string{"gr5mz"}, "affected": affected,
		"renamed": []object{{"channel": "h-gae3h-calls", "old": "calls", "new": "calls~2"}},
	})
}
