package pagetest

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var views = []string{
	"graph", "graph?show=table", "creatures", "lineage", "events", "dead-letters", "approvals", "problems", "policies", "outside",
	"turn/00000000000000000000000000000007-5", "graph?creature=c-gae3h-boat-2", "graph?creature=c-gae3h-boat-2&tab=state",
}

func (b *tab) goTo(view string) {
	b.t.Helper()
	eval[any](b, "location.hash = '#/"+view+"'")
	b.until("document.querySelector('main').childElementCount > 0 && !/Loading/.test(document.querySelector('main').textContent)")
}

// No view has a payload before its button is pressed, scrolls sideways on a small screen,
// or has a control without a name.
func TestEveryView(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/graph", desk)
	b.until("document.querySelectorAll('.chip').length === 40")
	for _, view := range views {
		b.goTo(view)
		if strings.Contains(eval[string](b, "document.documentElement.outerHTML"), secret) {
			t.Errorf("%s: a payload is in the page before it was shown", view)
		}
		b.everythingHasAName(view)
	}
	for _, width := range []int64{390, 320} {
		b.run(emulation.SetDeviceMetricsOverride(width, 844, 1, true))
		for _, view := range views {
			b.goTo(view)
			wide := eval[[]string](b, `(() => {
				const w = document.documentElement.clientWidth, main = document.querySelector('main')
				if (document.documentElement.scrollWidth <= w && main.scrollWidth <= main.clientWidth) return []
				return [...document.querySelectorAll('main *')].filter(x => x.getBoundingClientRect().right > w + 1 && !x.closest('.wide, .tabs, .source, .box.wide')).slice(0, 4).map(x => x.tagName + '.' + x.className)
			})()`)
			if len(wide) > 0 {
				t.Errorf("%s at %d px scrolls sideways: %v", view, width, wide)
			}
		}
	}
	if got := slices.DeleteFunc(slices.Clone(p.calls), func(c string) bool {
		return slices.Contains([]string{"dead_letters", "approvals", "policies", "sessions", "awareness", "state"}, c)
	}); len(got) > 0 {
		t.Errorf("looking at views called %v", got)
	}
}

// axNode is a node of the accessibility tree: not the type of cdproto, which refuses what a
// newer browser says beside it.
type axNode struct {
	Ignored bool    `json:"ignored"`
	Role    axValue `json:"role"`
	Name    axValue `json:"name"`
}

type axValue struct {
	Value any `json:"value"`
}

func (b *tab) accessibility() []axNode {
	b.t.Helper()
	var tree struct {
		Nodes []axNode `json:"nodes"`
	}
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		return cdp.Execute(ctx, "Accessibility.getFullAXTree", nil, &tree)
	}))
	return tree.Nodes
}

func (b *tab) everythingHasAName(view string) {
	b.t.Helper()
	nodes := b.accessibility()
	named := []string{"button", "link", "textbox", "searchbox", "combobox", "checkbox", "option", "tab", "listbox", "meter", "slider", "img", "image"}
	if len(nodes) < 20 {
		b.t.Errorf("%s: the accessibility tree has %d nodes", view, len(nodes))
	}
	for _, n := range nodes {
		role, _ := n.Role.Value.(string)
		if name, _ := n.Name.Value.(string); !n.Ignored && slices.Contains(named, role) && name == "" {
			b.t.Errorf("%s: a %s has no name", view, role)
		}
	}
}

func TestDeadLettersAreRedelivered(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/dead-letters", desk)
	b.until("document.querySelectorAll('.letter').length === 5")
	b.holds("main", "boat-2 is quarantined.", "Redeliver 6", "plan_route (boat.c:118:9)")
	b.clickText("Show")
	b.until("document.querySelector('.payload.shown').textContent === '" + secret + "'")
	b.click("section:nth-child(2) .letter input")
	b.clickText("Redeliver 1")
	b.until("document.querySelector('section:nth-child(2)').textContent.includes('1 delivery')")
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.letters); n != 7 {
		t.Errorf("%d letters are left, not 7", n)
	}
}

// While an operator looks at dead letters, others come and go without touching what is opened,
// chosen and focused, and a double click redelivers one group.
func TestDeadLettersStayWhileOthersArrive(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/dead-letters", desk)
	b.until("document.querySelectorAll('.letter').length === 5")
	eval[any](b, "window.boxes = [...document.querySelectorAll('main section')]; window.rows = [...document.querySelectorAll('.letter')]; null")
	b.clickText("Show")
	b.until("document.querySelector('.payload.shown')")
	b.click("section:nth-child(2) .letter input")
	kept := func(when string) {
		t.Helper()
		for _, condition := range []string{
			"document.querySelectorAll('main section')[0] === boxes[0] && document.querySelectorAll('main section')[1] === boxes[1]",
			"rows[0].isConnected && boxes[0].querySelector('.payload.shown')?.textContent === '" + secret + "'",
			"document.activeElement === boxes[1].querySelector('.letter input')", "!boxes[1].querySelector('.letter input').checked",
		} {
			if !eval[bool](b, condition) {
				t.Errorf("%s it is not so that %s", when, condition)
			}
		}
	}
	p.mu.Lock()
	more := maps.Clone(p.letters[0])
	more["id"], more["message"] = "one-more", "another"
	p.letters = append(p.letters, more)
	p.mu.Unlock()
	p.emit("dead_letter", "gae3h", more["creature"].(string), object{"reason": more["reason"]})
	b.until("document.querySelector('main section').textContent.includes('Redeliver 7')")
	kept("when a letter arrives")
	p.mu.Lock()
	p.letters = slices.DeleteFunc(p.letters, func(l object) bool { return l["id"] == "one-more" })
	p.mu.Unlock()
	p.emit("dead_letter", "gae3h", more["creature"].(string), object{"reason": more["reason"]})
	b.until("document.querySelector('main section').textContent.includes('Redeliver 6')")
	kept("when it is redelivered elsewhere")
}

// An approval says what would happen only when the reader requests it, and is answered with
// a reason. Neither button has the focus first.
func TestApprovalsAreAnswered(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/approvals", desk)
	b.until("document.querySelectorAll('main section').length === 2")
	b.holds("nav", "Approvals2")
	b.holds("main", "a message on orders of medic", "this cannot be undone", "careful rescue.hcl:14", "3 deliveries wait behind it", "It will be denied at 2026-11-26 10:00:00 UTC")
	if strings.Contains(eval[string](b, "document.documentElement.outerHTML"), secret) {
		t.Error("what would happen is in the page before it was requested")
	}
	if tag := eval[string](b, "document.activeElement.tagName"); tag == "BUTTON" {
		t.Error("a button has the focus")
	}
	b.clickText("Show")
	b.until("document.querySelector('.payload.shown').textContent === '" + secret + "'")
	eval[any](b, "document.querySelector('section input').value = 'as agreed'")
	b.clickText("Approve")
	b.until("document.querySelectorAll('main section').length === 1")
	b.clickText("Deny")
	b.until("document.querySelectorAll('main section').length === 0")
	b.holds("main", "No approvals")
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := []string{"approve q1 as agreed", "deny q2 "}; !slices.Equal(p.answers, want) {
		t.Errorf("the answers are %q, want %q", p.answers, want)
	}
}

// While an operator writes a reason, questions come and go without touching what was typed,
// what was opened, and which box is where.
func TestApprovalsStayWhileOthersArrive(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/approvals", desk)
	b.until("document.querySelectorAll('main section').length === 2")
	eval[any](b, "window.boxes = [...document.querySelectorAll('main section')]; null")
	b.clickText("Show")
	b.until("document.querySelector('.payload.shown')")
	b.click("section input")
	b.press("a", "s", " ", "a", "g", "r")
	kept := func(when string, order string) {
		t.Helper()
		for _, condition := range []string{
			"boxes[0].querySelector('input').value === 'as agr'", "document.activeElement === boxes[0].querySelector('input')",
			"boxes[0].querySelector('.payload.shown')?.textContent === '" + secret + "'", "document.querySelector('main section') === boxes[0]", order,
		} {
			if !eval[bool](b, condition) {
				t.Errorf("%s it is not so that %s", when, condition)
			}
		}
	}
	change := func(kind string, approvals ...object) {
		p.mu.Lock()
		p.approvals = approvals
		p.mu.Unlock()
		p.emit(kind, "gr5mz", p.creature("medic")["id"].(string), object{})
	}
	first := p.question("q1")
	first["behind"] = 4
	change("approval_asked", p.question("q3"), first, p.question("q2"))
	b.until("document.querySelectorAll('main section').length === 3")
	kept("when a question arrives", "document.querySelectorAll('main section')[1] === boxes[1]")
	b.holds("main section", "4 deliveries wait behind it")
	b.holds("main .head", "3 questions")

	change("approval_decided", p.question("q3"), first)
	b.until("document.querySelectorAll('main section').length === 2")
	kept("when another is decided", "!boxes[1].isConnected")

	b.press("e", "e", "d")
	// A double click answers one question, although the next box moves under the pointer.
	at := eval[[]float64](b, "(() => { const r = boxes[0].querySelector('.acts button').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()")
	b.run(chromedp.MouseClickXY(at[0], at[1]))
	b.until("!boxes[0].isConnected")
	if !eval[bool](b, fmt.Sprintf("document.elementFromPoint(%f, %f)?.closest('button')?.textContent === 'Approve'", at[0], at[1])) {
		t.Error("the next button is not where the first was, so that a double click is not tried")
	}
	b.run(chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2)))
	b.clickText("Deny")
	b.until("document.querySelectorAll('main section').length === 0")
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := []string{"approve q1 as agreed", "deny q3 "}; !slices.Equal(p.answers, want) {
		t.Errorf("the answers are %q, want %q", p.answers, want)
	}
}

// From any view to the failing line: the panel begins with what is wrong, and leads to the
// turn in one click.
func TestFailureIsTwoClicksAway(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/graph", desk)
	b.until("document.querySelector('[data-id=c-gae3h-boat-2]')?.classList.contains('is-quarantined')")
	b.until("[...document.querySelectorAll('.strip text')].some(x => x.textContent.includes('boat-2 quarantined'))")
	b.click("[data-id=c-gae3h-boat-2]")
	b.until("document.querySelector('.panel .wrong')?.textContent.includes('boat.c:118:9')")
	b.clickText("Look at the turn")
	b.until("document.querySelector('.frames')")
	b.holds("main", "Why it failed", "boat.c:118:9", "on_message", "creature_handle", "tide table ends at 40", "1 · Delivered", "harbour", "Nothing of this turn took effect")
	b.shot("page-turn")
	eval[any](b, "location.hash = '#/graph?creature=c-gae3h-boat-2'")
	b.clickText("Start again")
	b.until("document.querySelector('.panel .said').textContent === 'running' || document.querySelector('.panel .said').textContent === 'failing'")
}

func TestKeyboard(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/graph", desk)
	b.until("document.querySelectorAll('.chip').length === 40")
	reached := eval[int](b, `import('/graphview.js').then(({ nearest }) => {
		const all = [...document.querySelectorAll('.chip')].map(c => {
			const [x, y] = c.getAttribute('transform').match(/-?[\d.]+/g).map(Number)
			return { id: c.dataset.id, x, y }
		})
		const seen = new Set([all[0].id]), queue = [all[0].id]
		while (queue.length) {
			const from = queue.shift()
			for (const way of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
				const to = nearest(all, from, way)
				if (!seen.has(to)) { seen.add(to); queue.push(to) }
			}
		}
		return seen.size
	})`)
	if reached != 40 {
		t.Errorf("the arrows reach %d of 40 chips", reached)
	}
	b.press("/")
	b.until("document.activeElement.type === 'search'")
	b.press("b", "o", "a", "t", "-", "2", kb.Enter)
	b.until("document.querySelector('.panel h1')?.textContent === 'boat-2'")
	b.press(kb.Escape)
	b.until("!document.querySelector('.panel') && document.activeElement.getAttribute('aria-activedescendant') === 'chip-c-gae3h-boat-2'")
	if got := eval[string](b, "document.getElementById('chip-c-gae3h-boat-2').getAttribute('aria-label')"); got != "boat-2, quarantined, 128 waiting, graph south" {
		t.Errorf("the chip reads %q", got)
	}
	b.press(kb.ArrowUp)
	b.until("document.activeElement.getAttribute('aria-activedescendant') === 'chip-c-gae3h-boat-1'")
	b.press(kb.Enter)
	b.until("document.querySelector('.panel h1')?.textContent === 'boat-1' && document.activeElement.ariaLabel === 'Close'")
	held := kb.Encode('\r')[0]
	held.Text, held.AutoRepeat = "\r", true
	b.run(held)
	if eval[bool](b, "!document.querySelector('.panel')") {
		t.Error("Enter, held down, closes the panel that it has opened")
	}
	b.press(kb.Escape, "t")
	b.until("document.querySelectorAll('.table-view table').length === 3")
	b.holds(".table-view", "boat-2", "quarantined", "no listener", "launches")
	b.press("t", " ")
	b.until("document.querySelector('.link').textContent === 'paused'")
	b.press(" ")
	b.until("document.querySelector('.link').textContent === 'live'")
}

// Contrast of every pair of tokens, in both schemes, and shapes without colour.
func TestContrast(t *testing.T) {
	p := newRescuePond(t)
	for _, dark := range []bool{false, true} {
		b := openPond(t, p, "#/graph", look{width: 1440, height: 900, dark: dark})
		low := eval[[]string](b, `(() => {
			const style = getComputedStyle(document.documentElement)
			const rgb = name => style.getPropertyValue('--' + name).trim().match(/[0-9a-f]{2}/gi).map(x => parseInt(x, 16))
			const lum = name => { const [r, g, b] = rgb(name).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 }); return 0.2126 * r + 0.7152 * g + 0.0722 * b }
			const ratio = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05) }
			const grounds = ['bg', 'surface', 'sunken', 'raised']
			const pairs = []
			for (const g of grounds) {
				for (const t of ['ink', 'muted', 'accent', 'failing', 'quarantined', 'backing', 'stopped', 'running']) pairs.push([t, g, 4.5])
				for (let i = 0; i < 6; i++) pairs.push(['g' + i, g, 4.3])
				for (const t of ['control', 'edge', 'focus']) pairs.push([t, g, 3])
			}
			for (const st of ['failing', 'quarantined', 'backing']) pairs.push([st, st + '-bg', 4.5], ['ink', st + '-bg', 4.5], ['on-status', st, 4.5])
			pairs.push(['on-accent', 'accent', 4.5], ['accent', 'chosen', 4.5])
			return pairs.filter(([a, b, least]) => ratio(a, b) < least).map(([a, b]) => a + ' on ' + b + ' ' + ratio(a, b).toFixed(2))
		})()`)
		if len(low) > 0 {
			t.Errorf("dark %v: %v", dark, low)
		}
		if kinds := eval[int](b, "import('/lib.js').then(({ mark, statuses }) => new Set(statuses.map(st => mark(st).innerHTML)).size)"); kinds != 7 {
			t.Errorf("%d different shapes for 7 statuses", kinds)
		}
	}
}

func TestFaces(t *testing.T) {
	t.Run("empty", func(t *testing.T) {
		b := openPond(t, newPond(t), "#/graph", desk)
		b.until("document.querySelector('main').textContent.includes('No creatures yet')")
	})
	t.Run("lost and found", func(t *testing.T) {
		p := newRescuePond(t)
		b := openPond(t, p, "#/graph", desk)
		b.until("document.querySelectorAll('.chip').length === 40")
		b.expectLoss()
		p.mu.Lock()
		p.down = true
		p.mu.Unlock()
		p.end()
		b.until("document.querySelector('.band')?.textContent.includes('No connection since')")
		b.shot("lost")
		if n := eval[int](b, "document.querySelectorAll('.chip').length"); n != 40 {
			t.Errorf("the picture has %d chips while the connection is lost", n)
		}
		p.mu.Lock()
		p.down = false
		p.mu.Unlock()
		b.clickText("Try now")
		b.until("document.querySelector('.link').textContent === 'live' && !document.querySelector('.band')")
	})
	t.Run("no permission", func(t *testing.T) {
		p := newRescuePond(t)
		p.refuse = &refusal{status: http.StatusUnauthorized, code: "denied", detail: "the request has no token", remedy: "open the link that the server printed"}
		b := open(t, "about:blank", desk)
		b.expectLoss()
		b.run(chromedp.Navigate(p.server.URL))
		b.until("document.querySelector('main').textContent.includes('open the link') || document.querySelector('main').textContent.includes('Open the link')")
	})
	t.Run("not allowed to redeliver", func(t *testing.T) {
		p := newRescuePond(t)
		b := openPond(t, p, "#/dead-letters", desk)
		b.until("document.querySelectorAll('.letter').length === 5")
		b.expectLoss()
		p.mu.Lock()
		p.refuse = &refusal{only: "redeliver", status: http.StatusForbidden, code: "denied", detail: "the operation redeliver needs the scope operate", remedy: "use a token with the scope operate"}
		p.mu.Unlock()
		b.clickText("Redeliver 2")
		b.until("document.querySelector('.note')?.textContent.includes('You may not do this.')")
	})
	t.Run("too slow", func(t *testing.T) {
		p := newRescuePond(t)
		b := openPond(t, p, "#/events", desk)
		b.until("document.querySelectorAll('.event').length > 10")
		p.emit("lagged", "", "", object{"missed": 2114, "cursor": "cursor-1"})
		b.until("document.querySelector('.gap')?.textContent.includes('2,114 events left out here')")
		b.clickText("Fill the gap")
		b.until("!document.querySelector('.gap')")
	})
}

// Texts from the network stay texts, wherever they appear.
func TestHostileTexts(t *testing.T) {
	const hostile = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`
	p := newRescuePond(t)
	for _, c := range p.graphs[1].creatures {
		c["name"], c["species"], c["deployment"], c["module"] = hostile, hostile, hostile, hostile
	}
	for _, c := range p.graphs[1].channels {
		c["name"] = hostile
	}
	for _, l := range p.letters {
		l["error"], l["reason"], l["last_words"], l["payload"] = hostile, hostile, hostile, hostile
	}
	p.problems = []object{{"code": hostile, "message": hostile, "remedy": hostile, "ids": object{hostile: hostile}}}
	p.event(p.now(), "topology_changed", "gae3h", "", object{"kind": "none", "call": hostile, "by": hostile, "via": hostile})
	p.event(p.now(), "policy_denied", "gae3h", "c-gae3h-desk", object{"effect": hostile, "event": hostile, "policy": hostile, "reason": hostile, "where": hostile})
	p.event(p.now(), "turn_failed", "gae3h", "c-gae3h-desk", object{"code": hostile, "error": hostile + " (in " + hostile + " at " + hostile + ")"})
	b := openPond(t, p, "#/graph", desk)
	for _, view := range append([]string{"policies", fmt.Sprintf("turn/%032x-%d", 7, p.next)}, views...) {
		b.goTo(view)
		if eval[bool](b, "window.pwned === 1 || !!document.querySelector('main img, main script')") {
			t.Errorf("%s: a text became markup", view)
		}
	}
}

// Everything that is served takes at most 100 kB, compressed.
func TestSize(t *testing.T) {
	files, err := filepath.Glob("../../serve/page/*")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	total := 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := io.Copy(z, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		total += packed.Len()
	}
	t.Logf("%d files, %d bytes compressed", len(files), total)
	if total > 100_000 {
		t.Errorf("the page takes %d bytes compressed, more than 100,000", total)
	}
}

// A thousand creatures are dots on a canvas; those in trouble keep their names.
func TestThousandCreatures(t *testing.T) {
	p := newPond(t)
	for i, size := range []int{212, 340, 128, 96, 148, 76} {
		name := []string{"ingest", "crew", "night", "survey", "watch", "archive"}[i]
		var text strings.Builder
		for k := range size {
			fmt.Fprintf(&text, "c%d: %s-%d > %s-%d\n", k, name, k, name, (k*7+3)%size)
		}
		p.grow(fmt.Sprintf("g%d0000", i), name, text.String())
	}
	p.creature("crew-42")["state"] = "quarantined"
	p.creature("survey-15")["state"] = "backing_off"
	p.creature("ingest-121")["state"] = "quarantined"
	b := openPond(t, p, "#/graph", look{width: 1440, height: 900, dark: true})
	b.until("document.querySelector('canvas')?.width > 100")
	b.run(settle)
	b.shot("page-thousand")
	rates := eval[map[string]float64](b, `import('/dots.js').then(({ Dots }) => new Promise(resolve => {
		const draw = Dots.prototype.draw, took = []
		Dots.prototype.draw = function () { const at = performance.now(); draw.call(this); took.push(performance.now() - at) }
		const stage = document.querySelector('.stage'), r = stage.getBoundingClientRect(), begin = performance.now()
		let frames = 0, x = r.x + 300
		const send = (type, x) => stage.dispatchEvent(new PointerEvent(type, { pointerId: 1, bubbles: true, clientX: x, clientY: r.y + 300 }))
		stage.setPointerCapture = () => {}
		send('pointerdown', x)
		const step = () => {
			frames++
			send('pointermove', x += 2)
			if (performance.now() - begin < 1000) requestAnimationFrame(step)
			else { send('pointercancel', x); took.sort((a, b) => a - b); resolve({ 'frames a second': frames * 1000 / (performance.now() - begin), 'ms for a frame, at least': took[0], 'median': took[took.length >> 1] }) }
		}
		requestAnimationFrame(step)
	}))`)
	t.Log("while panning: ", rates)
	eval[any](b, "document.querySelector('.stage').focus()")
	b.press(kb.ArrowRight, kb.ArrowDown)
	b.until("document.querySelector('#dot-active')?.textContent.includes('running, graph')")
	b.press(kb.Enter)
	b.until("document.querySelector('.panel h1')")
}

// From 61 creatures on, members of a species share a chip, with the worst status on top.
func TestSpeciesStack(t *testing.T) {
	p := newPond(t)
	var text strings.Builder
	for k := range 80 {
		fmt.Fprintf(&text, "to-%d: gate > clerk-%d\nfrom-%d: clerk-%d > ledger\n", k, k, k, k)
	}
	p.grow("gstack", "office", text.String())
	p.creature("clerk-17")["state"] = "quarantined"
	b := openPond(t, p, "#/graph", desk)
	b.until("document.querySelectorAll('.chip').length === 3")
	b.until("document.querySelector('.is-quarantined .name')?.textContent === 'clerk × 80'")
	b.run(settle)
	b.shot("stack")
	b.click(".is-quarantined")
	b.until("document.querySelectorAll('main tbody tr').length === 80")
	b.goTo("graph?group=recipe")
	b.until("document.querySelectorAll('.chip').length === 1 && document.querySelector('.chip .name').textContent === 'office × 82'")
}
