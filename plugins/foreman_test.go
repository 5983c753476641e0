package plugins_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// A site is the graph of a foreman: its living workers, limited to most. Its
// tools change it at once, so a test plays each turn only once.
type site struct {
	most, born int
	alive      []string
}

func (s *site) tool(t *turn, name, args string) (string, abi.Code) {
	switch name {
	case "group_add_node":
		if len(s.alive) == s.most {
			return "", t.fail(abi.LimitExceeded, "no more")
		}
		s.born++
		id := fmt.Sprint("c", s.born)
		s.alive = append(s.alive, id)
		return fmt.Sprintf(`{"creature":%q}`, id), abi.OK
	case "group_remove_node":
		t.effects = append(t.effects, "remove "+args)
		return "{}", abi.OK
	case "group_status":
		var list []string
		for _, id := range s.alive {
			list = append(list, fmt.Sprintf(`{"id":%q,"state":"running"}`, id))
		}
		return `{"creatures":[` + strings.Join(list, ",") + `]}`, abi.OK
	}
	return "", t.fail(abi.NotFound, "no tool %s", name)
}

func (s *site) gone(id string) bool { return !slices.Contains(s.alive, id) }

// foreman plays deliveries on fresh instances and returns the effects of all
// of them.
func (s *site) foreman(t *testing.T, w *world, deliveries ...delivery) []effect {
	t.Helper()
	var all []effect
	for n, r := range play(t, builtin(t, "foreman"), w, true, deliveries) {
		if r.err != nil {
			t.Fatalf("delivery %d: %v", n, r.err)
		}
		all = append(all, r.effects...)
	}
	return all
}

func newSite(most int, config map[string]any) (*site, *world) {
	s := &site{most: most}
	return s, &world{channels: []string{"problems"}, features: true, tool: s.tool, gone: s.gone, config: config}
}

func task(text string) delivery { return delivery{channel: "tasks", payload: text} }

func result(tag int, code, text string) delivery {
	return delivery{kind: abi.KindResult, payload: text, detail: fmt.Sprintf(`{"tag":"%d","code":%q}`, tag, code)}
}

func TestForemanHiresAsThereIsMoreToDo(t *testing.T) {
	s, w := newSite(2, map[string]any{"per_worker": 2})
	got := s.foreman(t, w, task("a"), task(""), task("b"), task("c"), task("d"), task("e"))
	equal(t, got, `request "c1" "a" 1`, `request "c2" "b" 2`)
	got = s.foreman(t, w, result(2, "ok", ""), result(1, "ok", "cannot"), result(3, "ok", ""), result(4, "ok", ""), result(5, "ok", ""))
	equal(t, got, `request "c2" "c" 3`, sent("problems", "a: cannot", ""), `request "c1" "d" 4`, `request "c2" "e" 5`,
		`remove {"creature":"c1"}`, `remove {"creature":"c2"}`)
	equal(t, s.foreman(t, w, delivery{kind: abi.KindRequest}), fmt.Sprintf("reply %q", `{"open":0,"waiting":0,"workers":0}`))
}

func TestForemanGivesUpWhatFailsTooOften(t *testing.T) {
	s, w := newSite(1, map[string]any{"linger_ms": 5000})
	got := s.foreman(t, w, task("a"), result(1, "trapped", "oh"), result(2, "out_of_fuel", "no"), result(2, "ok", ""),
		delivery{kind: abi.KindTimer, detail: `{"name":"linger"}`})
	equal(t, got, `request "c1" "a" 1`, `request "c1" "a" 2`, sent("problems", "a: out_of_fuel: no", ""),
		fmt.Sprintf("timer linger %v %q", 5*time.Second, ""), `remove {"creature":"c1"}`)
}

// The reply of a removed worker may come after graph_changed, and even after
// the timer of an earlier loss.
func TestForemanHandsOutAgainOnlyWhatWasNotDone(t *testing.T) {
	s, w := newSite(1, nil)
	s.foreman(t, w, task("a"), task("b"))
	changed := delivery{kind: abi.KindGraphChanged}
	lost := func(look string) delivery {
		return delivery{kind: abi.KindTimer, payload: look, detail: `{"name":"lost"}`}
	}
	s.alive = nil
	equal(t, s.foreman(t, w, changed), `timer lost 0s "1"`, `request "c2" "b" 2`)
	s.alive = nil
	equal(t, s.foreman(t, w, changed), `timer lost 0s "2"`)
	equal(t, s.foreman(t, w, lost("1")), `request "c3" "a" 3`)
	equal(t, s.foreman(t, w, result(2, "ok", ""), lost("2"), result(3, "ok", "")), `remove {"creature":"c3"}`)
}

// After a restart the graph may be as it was when it was last reported to the
// foreman, before it hired the workers that are now missing: then only failing
// requests reveal the loss.
func TestForemanReplacesThoseItIsNotToldOf(t *testing.T) {
	s, w := newSite(2, map[string]any{"per_worker": 1})
	equal(t, s.foreman(t, w, task("a"), task("b"), task("c")), `request "c1" "a" 1`, `request "c2" "b" 2`)
	s.alive = nil
	equal(t, s.foreman(t, w, result(1, "not_connected", "")), `request "c3" "c" 3`, `request "c4" "a" 4`)
	equal(t, s.foreman(t, w, result(2, "not_connected", ""), result(3, "ok", "")), `request "c3" "b" 5`)

	s, w = newSite(1, map[string]any{"per_worker": 1, "linger_ms": 5000})
	s.foreman(t, w, task("a"), task("b"), result(1, "ok", ""), result(2, "ok", ""))
	s.alive = nil
	got := s.foreman(t, w, task("c"))
	equal(t, got[len(got)-1:], `request "c2" "c" 3`)
}

func TestForemanWithoutWorkersSaysSo(t *testing.T) {
	s, w := newSite(0, nil)
	equal(t, s.foreman(t, w, task("a"), task("b")), sent("problems", "no worker can be spawned: no more", ""))
	s.most = 1
	equal(t, s.foreman(t, w, delivery{kind: abi.KindGraphChanged}), `request "c1" "a" 1`)
}

func TestForemanMistakes(t *testing.T) {
	m := builtin(t, "foreman")
	refuses(t, m, map[string]any{"per_worker": 0}, "per_worker and attempts are 1 at least")
	refuses(t, m, map[string]any{"linger_ms": "soon"}, "config linger_ms: it is a whole number")
	refuses(t, m, map[string]any{"specie": "x"}, `there is no attribute "specie"`)
}
