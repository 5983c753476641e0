package pagetest

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
)

// A live terrarium with the real server.
type live struct {
	t       *testing.T
	tr      *terrarium.Terrarium
	handler *serve.Handler
	address string
	end     func() // ends the server, as SIGTERM does
}

func startLive(t *testing.T) *live {
	t.Helper()
	tr, err := terrarium.New(context.Background(), terrarium.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := serve.NewHandler(tr, serve.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- handler.Serve(ctx, listener, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := tr.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &live{t: t, tr: tr, handler: handler, end: cancel, address: listener.Addr().String()}
}

// link is a link that logs a browser in, once, and leads to a view.
func (l *live) link(view string) string {
	code := l.handler.LoginCode(operations.Rights{Scope: operations.Admin})
	return "http://" + l.address + "/login?code=" + code + "#/" + view
}

func (l *live) do(operation, args string) map[string]any {
	l.t.Helper()
	result, err := operations.Do(context.Background(), l.tr, operation, json.RawMessage(args))
	if err != nil {
		l.t.Fatal(operation, err)
	}
	text, err := json.Marshal(result)
	if err != nil {
		l.t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		l.t.Fatal(err)
	}
	return object
}

// rescue starts the example rescue: two graphs, each with a channel calls.
func rescue(t *testing.T) *live {
	l := startLive(t)
	for _, recipe := range []string{"north", "south"} {
		l.do("apply", `{"recipe": "../../examples/rescue/`+recipe+`.hcl"}`)
	}
	l.do("add_creature", `{"name": "bystander", "module": "builtin:echo"}`)
	l.do("send", `{"graph": "scouts", "channel": "calls", "payload": "hut sprained ankle"}`)
	l.do("send", `{"graph": "helicopter", "channel": "calls", "payload": "pier boat adrift"}`)
	l.do("wait_idle", `{}`)
	return l
}

// What is drawn in each frame: places of chips, and the colour of each.
const watch = `(() => {
	window.seen = []
	const step = () => {
		const frame = {}
		for (const c of document.querySelectorAll('.chip')) {
			frame[c.querySelector('.name').textContent] = c.getAttribute('transform') + ' ' + c.classList[1]
		}
		frame.moves = document.querySelector('.stage')?.dataset.motion || ''
		seen.push(frame)
		requestAnimationFrame(step)
	}
	requestAnimationFrame(step)
})()`

// A merge and a split while the page watches: a graph that is not concerned does not move by a
// pixel, colours belong to graphs, and the card covers no chip of the change.
func TestMergeAndSplit(t *testing.T) {
	l := rescue(t)
	b := open(t, l.link("graph"), desk)
	b.until("document.querySelectorAll('.chip').length === 5")
	b.run(settle)
	eval[any](b, watch)
	b.until("seen.length > 0")
	colour := func(name string) string {
		return eval[string](b, "seen.at(-1)["+quote(name)+"].split(' ').at(-1)")
	}
	north, south := colour("alarm"), colour("helicopter")
	if north == south {
		t.Errorf("both graphs have the colour %s", north)
	}

	l.do("connect", `{"from": "alarm", "to": "helicopter", "channel": "help"}`)
	b.until("document.querySelector('[data-motion=merge]')")
	b.until("document.querySelector('.card')")
	b.shot("live-together")
	b.holds(".card", "Merged", "south", "(2 creatures) became part of", "north, which keeps its id", "an edge from alarm to helicopter over help", "calls is now calls~2", "desk still calls it calls")
	b.cardIsBeside()
	if got := colour("helicopter"); got != north {
		t.Errorf("after the merge the helicopter has the colour %s, the graph %s", got, north)
	}
	if n := eval[int](b, "document.querySelectorAll('.chip.came').length"); n != 2 {
		t.Errorf("%d chips have the bar of newcomers, not 2", n)
	}

	l.do("disconnect", `{"from": "alarm", "to": "helicopter"}`)
	b.until("document.querySelector('[data-motion=split]')")
	b.until("document.querySelector('.card')?.textContent.includes('Split')")
	b.shot("live-apart-again")
	b.cardIsBeside()
	if got := colour("alarm"); got != north {
		t.Errorf("after the split the alarm has the colour %s, not %s", got, north)
	}
	places := eval[[]string](b, "[...new Set(seen.map(f => f.bystander))]")
	if len(places) != 1 {
		t.Errorf("the bystander was at %d places: %v", len(places), places)
	}
	frames := eval[map[string]int](b, "Object.fromEntries(['merge', 'split'].map(k => [k, seen.filter(f => f.moves === k).length]))")
	t.Log("frames of the films: ", frames)
	if frames["merge"] < 3 || frames["split"] < 3 {
		t.Errorf("the films have only these frames: %v", frames)
	}
	b.holds("[aria-live]", "Merged")
}

func quote(text any) string {
	data, _ := json.Marshal(text) // a string cannot fail
	return string(data)
}

// cardIsBeside fails the test if the card covers a chip that the change concerns.
func (b *tab) cardIsBeside() {
	b.t.Helper()
	covered := eval[[]string](b, `(() => {
		const card = document.querySelector('.card').getBoundingClientRect()
		return [...document.querySelectorAll('.chip')].filter(c => {
			const r = c.getBoundingClientRect()
			return r.left < card.right && r.right > card.left && r.top < card.bottom && r.bottom > card.top
		}).map(c => c.querySelector('.name').textContent)
	})()`)
	if len(covered) > 0 {
		b.t.Errorf("the card covers %v", covered)
	}
}

// The time machine: the graphs as they were before a merge, with a creature and a channel that
// were removed since, and without what came since.
func TestPast(t *testing.T) {
	l := rescue(t)
	b := open(t, l.link("graph"), desk)
	b.until("document.querySelectorAll('.bed').length === 3")
	before := l.do("search", `{"query": "adrift"}`)["found"].([]any)[0].(map[string]any)["cursor"].(string)
	l.do("connect", `{"from": "alarm", "to": "helicopter", "channel": "help"}`)
	l.do("remove_creature", `{"creature": "bystander"}`)
	l.do("remove_channel", `{"channel": "calls", "graph": "alarm"}`)
	l.do("add_creature", `{"name": "newcomer", "module": "builtin:echo", "join": "alarm"}`)
	b.until("document.querySelectorAll('.bed').length === 2 && document.querySelector('.scene').textContent.includes('newcomer')") // scouts is apart

	b.clickText("Go back…")
	b.until("document.querySelector('.band')?.textContent.includes('The graphs at') && document.querySelectorAll('.bed').length >= 1")
	b.goTo("graph?at=" + before)
	b.until("document.querySelector('.band')?.textContent.includes('The graphs a') && document.querySelectorAll('.bed').length === 3")
	b.holds(".scene", "bystander", "calls", "alarm", "helicopter")
	if text := eval[string](b, "document.querySelector('.scene').textContent"); strings.Contains(text, "newcomer") || strings.Contains(text, "help") {
		t.Error("the past has what came later:", text)
	}
	b.shot("live-past")
	b.goTo("graph?show=table&at=" + before)
	b.until("document.querySelector('.table-view')?.textContent.includes('bystander')")
	b.expectLoss() // the next request is refused
	b.goTo("graph?at=" + strings.Repeat("A", 40))
	b.until("document.querySelector('.band')?.textContent.includes('neither a cursor of events nor a time')")
	b.goTo("graph?at=" + before)
	b.until("document.querySelector('.band')?.textContent.includes('The graphs a')")
	b.clickText("Back to now")
	b.until("document.querySelectorAll('.bed').length === 2")
	b.holds(".scene", "newcomer")
}

// With reduced motion there is no film, only its end.
func TestReducedMotion(t *testing.T) {
	l := rescue(t)
	b := open(t, l.link("graph"), look{width: 1440, height: 900, dark: true, still: true})
	b.until("document.querySelectorAll('.chip').length === 5")
	eval[any](b, watch)
	l.do("connect", `{"from": "alarm", "to": "helicopter", "channel": "help"}`)
	b.until("document.querySelector('.card')")
	if n := eval[int](b, "seen.filter(f => f.moves).length"); n != 0 {
		t.Errorf("%d frames were of a film", n)
	}
	b.clickText("Show in lineage")
	b.until("document.querySelectorAll('.lines .node').length >= 3")
	b.holds("main table", "merge", "start", "north + south")
}

// The real server, from a message to its turn, and what was sent by hand.
func TestLiveTurn(t *testing.T) {
	l := rescue(t)
	b := open(t, l.link("graph?creature=desk"), desk)
	b.until("document.querySelectorAll('.chip').length === 5")
	eval[any](b, "location.hash = '#/graph?tab=send&creature=desk'")
	b.until("document.querySelector('#send-to option:nth-child(2)')")
	eval[any](b, "document.querySelector('#send-to').selectedIndex = 1; document.querySelector('#send-text').value = 'cove "+secret+"'")
	b.click(".form .main")
	b.until("document.querySelector('.note')?.textContent.includes('Sent as number 2')")
	if err := l.tr.WaitIdle(t.Context()); err != nil { // the newest turn is that of this message
		t.Fatal(err)
	}
	eval[any](b, "location.hash = '#/events?q=kind:turn_ended%20creature:helicopter'")
	b.until("document.querySelectorAll('.event').length >= 1")
	eval[any](b, "document.querySelector('.event').click()")
	b.clickText("Turn")
	b.until("document.querySelector('.three')")
	b.holds(".three", "desk", "flights#2", "state write", "count/cove")
	if strings.Contains(eval[string](b, "document.documentElement.outerHTML"), secret) {
		t.Error("a payload is in the page before it was shown")
	}
	b.clickText("Show")
	b.until("document.querySelector('.payload.shown')?.textContent.includes('" + secret + "')")
}

// The view of events says what made a change, and the caller or the creature.
func TestLiveChange(t *testing.T) {
	l := rescue(t)
	b := open(t, l.link("graph"), desk)
	b.until("document.querySelectorAll('.chip').length === 5 && document.body.innerText.includes('live')")
	ann := operations.Rights{Scope: operations.Operate, Name: "ann", Via: "token"}
	if _, err := operations.DoAs(context.Background(), l.tr, ann, "stop_creature", json.RawMessage(`{"creature": "bystander"}`)); err != nil {
		t.Fatal(err)
	}
	eval[any](b, "location.hash = '#/events?q=kind:creature_stopped'")
	b.until("document.querySelectorAll('.event').length === 1")
	b.holds(".event", "stop_creature by ann (token)")
}

// A service that ends announces this, and the page does not try to connect again and again.
func TestLiveEnd(t *testing.T) {
	l := rescue(t)
	b := open(t, l.link("graph"), desk)
	b.until("document.querySelectorAll('.chip').length === 5")
	b.expectLoss()
	l.end()
	b.until("document.querySelector('main').textContent.includes('Everything up to then is saved.')")
	b.shot("ended")
}

// The page listens to every kind of event.
func TestKinds(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/events.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		OneOf []struct {
			Properties struct{ Kind struct{ Const string } }
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	b := openPond(t, newPond(t), "#/graph", desk)
	kinds := eval[[]string](b, "import('/api.js').then(m => m.kinds)")
	for _, k := range schema.OneOf {
		if !slices.Contains(kinds, k.Properties.Kind.Const) {
			t.Errorf("the page does not listen to %q", k.Properties.Kind.Const)
		}
	}
	if len(kinds) != len(schema.OneOf) {
		t.Errorf("the page listens to %d kinds, and there are %d", len(kinds), len(schema.OneOf))
	}
}
