package pagetest

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var settle = chromedp.Sleep(300 * time.Millisecond)

// look1 opens the pond and waits for its picture.
func openPond(t *testing.T, p *pond, hash string, l look) *tab {
	t.Helper()
	b := open(t, p.server.URL+"/"+hash, l)
	b.until("document.querySelector('.link')?.textContent === 'live' && !document.querySelector('.outlines')")
	return b
}

// TestShots writes pictures of every view, for readers who change it.
func TestShots(t *testing.T) {
	if os.Getenv("TERRARIUM_SHOTS") == "" {
		t.Skip("TERRARIUM_SHOTS does not name a directory for pictures")
	}
	for _, dark := range []bool{false, true} {
		name := map[bool]string{false: "light", true: "dark"}[dark]
		t.Run(name, func(t *testing.T) {
			p := newRescuePond(t)
			b := openPond(t, p, "#/graph", look{width: 1440, height: 900, dark: dark})
			b.until("document.querySelectorAll('.chip').length === 40")
			p.traffic()
			b.until("[...document.querySelectorAll('.ring .rate')].some(x => x.textContent.endsWith('/s'))")
			b.run(chromedp.Sleep(2 * time.Second))
			b.shot("graph-" + name)
			for _, view := range []string{"creatures", "lineage", "events", "dead-letters", "problems", "policies", "approvals", "turn/00000000000000000000000000000007-25", "graph?show=table", "graph?creature=c-gae3h-boat-2"} {
				eval[any](b, "location.hash = '#/"+view+"'")
				b.until("document.querySelector('main').childElementCount > 0 && !document.querySelector('main').textContent.includes('Reading')")
				b.run(settle)
				b.shot(strings.NewReplacer("/", "-", "?", "-", "=", "-").Replace(view[:min(len(view), 12)]) + "-" + name)
			}
		})
	}
}

func TestPhone(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/graph", look{width: 390, height: 844})
	b.until("document.querySelectorAll('.mini').length === 3")
	b.run(settle)
	b.shot("phone-graph")
	eval[any](b, "location.hash = '#/dead-letters'")
	b.until("document.querySelectorAll('.letter').length > 3")
	b.shot("phone-letters")
	eval[any](b, "location.hash = '#/graph?creature=c-gae3h-boat-2'")
	b.until("document.querySelector('.panel .wrong')")
	b.shot("phone-creature")
}
