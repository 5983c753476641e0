package pagetest

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var settle = chromedp.Sleep(300 * time.Millisecond)

// openPond opens the pond and waits for its picture.
func openPond(t *testing.T, p *pond, hash string, l look) *tab {
	t.Helper()
	b := open(t, p.server.URL+"/"+hash, l)
	b.until("document.querySelector('.link')?.textContent === 'live' && !document.querySelector('.outlines') && document.querySelector('main').childElementCount > 0")
	return b
}

// TestShots writes pictures of every view, for readers who change it.
func TestShots(t *testing.T) {
	if os.Getenv("TERRARIUM_SHOTS") == "" {
		t.Skip("TERRARIUM_SHOTS does not name a directory for pictures")
	}
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			p := newRescuePond(t)
			b := openPond(t, p, "#/graph", look{width: 1440, height: 900, dark: scheme == "dark"})
			b.until("document.querySelectorAll('.chip').length === 40")
			for range 3 {
				p.traffic()
			}
			b.until("[...document.querySelectorAll('.ring .rate')].some(x => x.textContent.endsWith('/s'))")
			b.run(chromedp.Sleep(2 * time.Second))
			b.shot("page-graph-" + scheme)
			names := map[string]string{"graph?creature=c-gae3h-boat-2": "creature", "graph?show=table": "table", "lineage?at=" + at(10): "lineage"}
			for _, view := range append([]string{"graph?creature=c-gae3h-boat-2", "graph?show=table", "lineage?at=" + at(10)}, "creatures", "events", "dead-letters", "approvals", "problems", "policies") {
				b.goTo(view)
				b.run(settle)
				name := names[view]
				if name == "" {
					name = view
				}
				b.shot("page-" + name + "-" + scheme)
			}
		})
	}
}

func at(minutes int) string {
	return strconv.FormatInt(time.Now().Add(-time.Duration(minutes)*time.Minute).UnixMilli(), 10)
}

// The film of a merge of 21 creatures, stopped in its middle, and its end.
func TestFilm(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/graph", desk)
	b.until("document.querySelectorAll('.chip').length === 40")
	p.traffic()
	b.until("[...document.querySelectorAll('.ring .rate')].some(x => x.textContent.endsWith('/s'))")
	eval[any](b, "import('/motion.js').then(m => { m.pace.hold = 640 })")
	crew := `JSON.stringify([...document.querySelectorAll('.chip')].filter(c => c.dataset.id.includes('gwj60')).map(c => c.getAttribute('transform')))`
	before := eval[string](b, crew)
	p.merge()
	b.until("document.querySelector('[data-motion=merge]') && document.querySelectorAll('.ghost').length === 9")
	b.run(chromedp.Sleep(900 * time.Millisecond))
	b.shot("page-merging")
	if got := eval[int](b, "[...document.querySelectorAll('.chip.came')].filter(c => c.classList.contains('g1')).length"); got != 9 {
		t.Errorf("in the middle of the film %d of 9 newcomers have their old colour", got)
	}
	eval[any](b, "import('/motion.js').then(m => { m.pace.hold = undefined })")
	b.until("document.querySelector('.card')")
	b.shot("page-merged")
	b.cardIsBeside()
	if after := eval[string](b, crew); after != before {
		t.Errorf("the graph that is not concerned moved:\n%s\n%s", before, after)
	}
	if got := eval[int](b, "[...document.querySelectorAll('.chip.came')].filter(c => c.classList.contains('g0')).length"); got != 9 {
		t.Errorf("after the film %d of 9 newcomers have their new colour", got)
	}
	b.holds(".card", "south (9 creatures) became part of", "north, which keeps its id gr5mz", "calls is now calls~2")
}

func TestPhone(t *testing.T) {
	p := newRescuePond(t)
	b := openPond(t, p, "#/graph", look{width: 390, height: 844})
	b.until("document.querySelectorAll('.mini').length === 3")
	b.holds(".cards", "boat-2", "quarantined", "medic", "backing off")
	b.run(settle)
	b.shot("phone-graph")
	b.goTo("dead-letters")
	b.until("document.querySelectorAll('.letter').length > 3")
	b.shot("phone-letters")
	b.goTo("graph")
	b.clickText("boat-2")
	b.until("document.querySelector('.panel .wrong')")
	b.shot("phone-creature")
}
