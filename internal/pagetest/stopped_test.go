package pagetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A recipe that stops while the page watches: its creatures are shown as paused with the reason,
// nothing on the page offers to start one of them, and they continue when the recipe is applied
// again.
func TestStoppedRecipe(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) { stoppedRecipe(t, scheme) })
	}
}

const talk = `
variable "turns" { type = number }
channel "ping" {}
channel "pong" {}
creature "ann" {
  module = "builtin:relay"
  listen = [channel.ping]
  send   = [channel.pong]
}
creature "bob" {
  module = "builtin:relay"
  listen = [channel.pong]
  send   = [channel.ping]
}
stop_when "enough" { turns = var.turns }
`

func stoppedRecipe(t *testing.T, scheme string) {
	recipe := filepath.Join(t.TempDir(), "talk.hcl")
	if err := os.WriteFile(recipe, []byte(talk), 0o666); err != nil {
		t.Fatal(err)
	}
	l := startLive(t)
	apply := func(turns string) {
		l.do("apply", `{"recipe": `+quote(recipe)+`, "vars": {"turns": `+quote(turns)+`}}`)
	}
	apply("9")
	l.do("add_creature", `{"name": "bystander", "module": "builtin:echo"}`)
	b := open(t, l.link("graph?creature=ann"), look{width: 1440, height: 900, dark: scheme == "dark"})
	b.until("document.querySelectorAll('.chip').length === 3 && document.querySelector('.panel h1')?.textContent === 'ann'")
	if wrong := b.text(".panel .wrong"); wrong != "" {
		t.Errorf("before the recipe stops, the panel says %q", wrong)
	}
	l.do("send", `{"channel": "ping", "payload": "hello"}`)
	b.until("document.querySelector('.panel .wrong')?.textContent.includes('Its recipe has stopped.')")
	b.holds(".panel .wrong", "stop_when.enough holds: turns 9 of 9.", "until the block is changed or removed and the recipe is applied again.")
	paused := "[...document.querySelectorAll('.chip')].filter(c => c.classList.contains('is-paused')).map(c => c.querySelector('.name').textContent).sort().join()"
	b.until(paused + " === 'ann,bob'")
	noStart := func(what string) {
		t.Helper()
		if n := eval[int](b, "document.querySelectorAll('.panel .wrong button').length"); n != 0 {
			t.Errorf("%s: the panel has %d buttons", what, n)
		}
	}
	noStart("paused")
	b.run(settle)
	b.shot("stopped-recipe-" + scheme)

	l.do("stop_creature", `{"creature": "ann"}`) // by itself, as well
	b.until("document.querySelector('.panel .wrong')?.textContent.startsWith('Stopped.')")
	b.holds(".panel .wrong", "Its recipe has stopped, too: stop_when.enough holds: turns 9 of 9.")
	noStart("stopped")

	b.goTo("events")
	b.until("[...document.querySelectorAll('.event')].some(e => e.textContent.includes('talk: stop_when.enough holds: turns 9 of 9'))")
	b.goTo("creatures")
	b.until("[...document.querySelectorAll('main tr')].filter(r => r.textContent.includes('paused')).length === 1")
	b.shot("stopped-recipe-creatures-" + scheme)

	b.goTo("graph?creature=ann")
	apply("11")
	b.until("document.querySelector('.panel .wrong')?.textContent.startsWith('Stopped.') && !document.querySelector('.panel .wrong').textContent.includes('recipe')")
	b.clickText("Start")
	b.until("document.querySelector('.panel .wrong')?.textContent.includes('turns 11 of 11')")
	apply("1000000000")
	b.until(paused + " === ''")
	apply("1") // or they would talk on while the test ends
	b.until(paused + " === 'ann,bob'")
	if text := eval[string](b, "document.querySelector('main').textContent"); strings.Contains(text, "undefined") {
		t.Error("the page says undefined:", text)
	}
}
