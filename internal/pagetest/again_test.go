package pagetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp/kb"
)

// again is what a failed turn of a boat does again: the same, or with another module more.
func (p *pond) again(args object) object {
	module, _ := args["module"].(string)
	p.modules = append(p.modules, module)
	failed := object{"module": "boat.wasm", "module_sha256": strings.Repeat("52b1ed13", 8), "fuel": 61204772, "error": object{"code": "trapped", "message": trap}}
	log := object{"kind": "log", "target": "warn", "payload": "tide table ends at 40, asked for 52", "size": 35}
	failure := object{"kind": "failed", "target": "trapped", "payload": trap, "size": len(trap)}
	out := object{
		"turn": args["turn"], "creature": "c-gae3h-boat-2", "name": "boat-2", "same": true, "first": -1, "then": failed, "again": failed,
		"rows": []object{{"same": true, "then": log, "again": log}, {"same": true, "then": failure, "again": failure}},
	}
	if module == "" {
		return out
	}
	out["same"], out["first"] = false, 1
	out["again"] = object{"module": "boat.wasm", "module_sha256": strings.Repeat("0a", 32), "fuel": 4012}
	out["rows"] = []object{
		{"same": true, "then": log, "again": log},
		{"same": false, "again": object{"kind": "send", "target": "returns", "headers": object{"priority": "high"}, "payload": secret, "size": len(secret)}},
		{"same": false, "again": object{"kind": "state", "target": "route/pier", "payload": secret, "size": len(secret)}},
		{"same": false, "then": failure},
	}
	return out
}

const failedTurn = "turn/00000000000000000000000000000007-5"

// choose selects an option of the box by its text.
func (b *tab) choose(text string) {
	b.t.Helper()
	eval[any](b, fmt.Sprintf(`(() => { const s = document.querySelector('#again-module'); s.value = [...s.options].find(o => o.text.includes(%s)).value; s.dispatchEvent(new Event('change')) })()`, quote(text)))
}

// A turn is run again on the recorded module and on another one, with both sides beside each
// other. Payloads stay hidden until each is requested.
func TestTurnIsRunAgain(t *testing.T) {
	for _, dark := range []bool{false, true} {
		p := newRescuePond(t)
		b := openPond(t, p, "#/graph", look{width: 1440, height: 900, dark: dark})
		b.until("document.querySelectorAll('.chip').length === 40")
		b.goTo(failedTurn)
		b.until("document.querySelector('.again button')")
		b.holds(".again", "It changes nothing", "the recorded module", "as it runs now: boat.wasm (52b1ed13)", "another module")
		b.clickText("Run it again")
		b.until("document.querySelector('.again .note').textContent === 'It does the same again.'")
		b.holds(".sides", "outcome", "trapped", "plan_route (boat.c:118:9)", "61,204,772", "tide table ends at 40")
		if n := eval[int](b, "document.querySelectorAll('.sides .differs').length"); n != 0 {
			t.Errorf("%d rows differ, although the turn does the same again", n)
		}
		b.choose("as it runs now")
		b.clickText("Run it again")
		b.until("document.querySelector('.again .note').textContent === 'It differs in the outcome and 2 effects.'")
		if got := eval[[]string](b, "[...document.querySelectorAll('.sides .differs [role=rowheader]')].map(x => x.textContent)"); !slices.Equal(got, []string{"≠ differs: outcome", "≠ differs: module", "≠ differs: send", "≠ differs: state"}) {
			t.Errorf("these rows differ: %q", got)
		}
		if strings.Contains(eval[string](b, "document.documentElement.outerHTML"), secret) {
			t.Error("a payload is in the page before it was shown")
		}
		b.everythingHasAName("a turn that was run again")
		scheme := map[bool]string{false: "light", true: "dark"}[dark]
		b.shot(map[bool]string{false: "page-again", true: "again-dark"}[dark])
		b.click("#again-first .payload button")
		b.until("document.querySelector('#again-first .payload.shown')?.textContent === '" + secret + "'")
		for _, width := range []int64{390, 320} {
			b.run(emulation.SetDeviceMetricsOverride(width, 844, 1, true))
			if wide := eval[bool](b, "document.documentElement.scrollWidth > document.documentElement.clientWidth || document.querySelector('main').scrollWidth > document.querySelector('main').clientWidth"); wide {
				t.Errorf("at %d px the view scrolls sideways", width)
			}
			eval[any](b, "document.querySelector('.again').scrollIntoView()")
			b.run(settle)
			b.shot(fmt.Sprintf("again-%d-%s", width, scheme))
		}
		p.mu.Lock()
		if want := []string{"", "sha256:" + strings.Repeat("52b1ed13", 8)}; !slices.Equal(p.modules, want) {
			t.Errorf("the modules are %q, want %q", p.modules, want)
		}
		p.mu.Unlock()
	}
}

// The rows are a table to assistive technology, and everything works without a pointer.
func TestTurnIsRunAgainByKeyboard(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/"+failedTurn, desk)
	b.until("document.querySelector('.again button')")
	eval[any](b, "document.querySelector('.again button').focus()")
	b.press(kb.Tab)
	b.until("document.activeElement.id === 'again-module'")
	b.press(kb.End)
	b.until("document.activeElement.ariaLabel === 'Path of the module, or builtin:NAME'")
	b.press(kb.Enter)
	b.until("document.querySelector('.again .note').textContent === 'Name a module first.'")
	b.press("b", "u", "i", "l", "t", "i", "n", ":", "e", "c", "h", "o", kb.Enter)
	b.until("document.querySelector('.again .note').textContent.startsWith('It differs')")
	if got := eval[string](b, "document.querySelector('.again .note').getAttribute('role')"); got != "status" {
		t.Errorf("the outcome is announced as %q", got)
	}
	roles := b.roles()
	if roles["table"] != 1 || roles["columnheader"] != 3 || roles["rowheader"] != 6 || roles["row"] != 7 {
		t.Errorf("the accessibility tree has %v", roles)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.modules, []string{"builtin:echo"}) {
		t.Errorf("the modules are %q", p.modules)
	}
}

// What can go wrong is said in the box: no permission, a turn that is no longer recorded, a
// lost connection, and a request that was cancelled.
func TestTurnCannotBeRunAgain(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/"+failedTurn, desk)
	b.until("document.querySelector('.again button')")
	b.expectLoss()
	for name, c := range map[string]struct {
		refusal refusal
		says    []string
	}{
		"no permission": {refusal{only: "replay_turn", status: http.StatusForbidden, code: "not_privileged", detail: "the token has the scope operate, and the operation needs admin", remedy: "use a token with the scope admin"}, []string{"You may not do this.", "Use a token with the scope admin."}},
		"pruned":        {refusal{only: "replay_turn", status: http.StatusNotFound, code: "not_found", detail: "the turn is no longer recorded, because its history has been pruned", remedy: "choose a later turn, or keep more history"}, []string{"not_found", "no longer recorded", "Choose a later turn"}},
	} {
		p.mu.Lock()
		p.refuse = &c.refusal
		p.mu.Unlock()
		b.clickText("Run it again")
		b.until("document.querySelector('.again .note').textContent.includes(" + quote(c.says[0]) + ")")
		b.holds(".again .note", c.says...)
		if eval[bool](b, "!!document.querySelector('.sides') || document.querySelector('.again button').disabled") {
			t.Errorf("%s: there is a result, or the button stays off", name)
		}
	}
	b.shot("again-refused")
	p.mu.Lock()
	p.refuse, p.hold = nil, make(chan struct{})
	p.mu.Unlock()
	eval[any](b, "document.querySelector('.again button').focus()")
	b.press(kb.Enter)
	b.until("document.querySelector('.again .note').textContent === 'Running it again…' && document.querySelector('.again button').disabled && document.activeElement.textContent === 'Cancel'")
	b.shot("again-loading")
	b.press(kb.Enter)
	b.until("document.querySelector('.again .note').textContent === 'Cancelled.' && !document.querySelector('.again button').disabled && document.activeElement.textContent === 'Run it again'")
	p.mu.Lock()
	close(p.hold)
	p.hold, p.down = nil, true
	p.mu.Unlock()
	p.end()
	b.until("document.querySelector('.again button').disabled")
}

// The real server: a failed turn of a script fails again at the same line, and succeeds on
// another module, while the session stays as it is.
func TestLiveRunAgain(t *testing.T) {
	l := startLive(t)
	script, err := json.Marshal("export default {\n  message(turn) {\n    throw new Error('no ' + turn.text())\n  },\n}")
	if err != nil {
		t.Fatal(err)
	}
	l.do("add_creature", fmt.Sprintf(`{"name": "newt", "module": "builtin:js", "config": {"script": %s}, "restart": {"attempts": 1}}`, script))
	l.do("add_creature", `{"name": "relay", "module": "builtin:echo"}`)
	l.do("send_to", `{"creature": "newt", "payload": "`+secret+`"}`)
	l.do("wait_idle", `{}`)
	failed := l.do("history", `{"graph": "newt", "kinds": ["turn_failed"]}`)["events"].([]any)[0].(map[string]any)["id"].(string)
	before := fmt.Sprint(l.do("history", `{"graph": "newt"}`), l.do("dead_letters", `{"graph": "newt"}`))
	b := open(t, l.link("turn/"+failed), desk)
	b.until("document.querySelector('.again button') && !document.querySelector('.again button').disabled")
	b.holds(".three", "log, kept", "error: no ")
	b.clickText("Run it again")
	b.until("document.querySelector('.again .note').textContent === 'It does the same again.'")
	b.holds(".sides", "failed", "newt.js:3", "builtin:js", "log")
	b.choose("builtin:echo")
	b.clickText("Run it again")
	b.until("document.querySelector('.again .note').textContent.startsWith('It differs in')")
	b.holds(".sides", "done", "builtin:js", "sha256:")
	if after := fmt.Sprint(l.do("history", `{"graph": "newt"}`), l.do("dead_letters", `{"graph": "newt"}`)); after != before {
		t.Errorf("the session changed from\n%s\nto\n%s", before, after)
	}
}

// roles counts the roles of the accessibility tree within the box of the turn.
func (b *tab) roles() map[string]int {
	b.t.Helper()
	out := map[string]int{}
	for _, n := range b.accessibility() {
		if role, _ := n.Role.Value.(string); !n.Ignored {
			out[role]++
		}
	}
	return out
}
