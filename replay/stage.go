package replay

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// stage is where turns are run again: the creatures, the modules and the result.
type stage struct {
	o        Options
	cast     *cast
	actors   map[journal.CreatureID]*actor
	chosen   map[journal.CreatureID]bool // whether Options.Creatures selects it
	modules  map[string]*loaded          // by name; "": Options.Module
	result   Report
	repeated *comparing       // the turn Options.only, when it has been run again
	unjudged map[unjudged]int // index in the result
}

// loaded is a module, or the error of loading it.
type loaded struct {
	module abi.Module
	err    error
}

func newStage(o Options) *stage {
	return &stage{
		o: o, cast: newCast(), actors: map[journal.CreatureID]*actor{}, chosen: map[journal.CreatureID]bool{},
		modules: map[string]*loaded{}, result: Report{Differences: []Difference{}, Unjudged: []Unjudged{}}, unjudged: map[unjudged]int{},
	}
}

// close closes instances and modules.
func (s *stage) close(ctx context.Context) {
	for _, a := range s.actors {
		a.discard(ctx)
	}
	for _, m := range s.modules {
		if m.module != nil {
			_ = m.module.Close(ctx) // it has only been run
		}
	}
}

// wants reports whether to run the turns of a creature again. A creature can be selected
// by its present name or an earlier one.
func (s *stage) wants(id journal.CreatureID) bool {
	if len(s.o.Creatures) == 0 || s.chosen[id] {
		return true
	}
	name := ""
	if m := s.cast.members[id]; m != nil {
		name = m.name
	}
	for _, c := range s.o.Creatures {
		if c == string(id) || matches(c, name) {
			s.chosen[id] = true
			return true
		}
	}
	return false
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return name != "" && (pattern == name || err == nil && ok)
}

func (s *stage) actor(id journal.CreatureID) *actor {
	a := s.actors[id]
	if a == nil {
		a = newActor(s, id)
		s.actors[id] = a
	}
	return a
}

// module finds the module of a creature.
func (s *stage) module(ctx context.Context, set *journal.Setting) (abi.Module, error) {
	name := set.Module
	if len(s.o.Module) > 0 {
		name = ""
	}
	m := s.modules[name]
	if m == nil {
		m = s.load(ctx, name)
		s.modules[name] = m
	}
	if m.err != nil || name == "" {
		return m.module, m.err
	}
	if now := m.module.Info().SHA256; now != set.SHA256 {
		return nil, &abi.Error{
			Code: abi.Conflict, Message: fmt.Sprintf("%s is not the recorded module: its SHA-256 is %.12s… and was %.12s…", name, now, set.SHA256),
			IDs: map[string]string{"module": name, "module_sha256": set.SHA256},
		}
	}
	return m.module, nil
}

func (s *stage) load(ctx context.Context, name string) *loaded {
	wasm := s.o.Module
	if name != "" {
		if s.o.Load == nil {
			return &loaded{err: fmt.Errorf("there is no loader for %s", name)}
		}
		var err error
		if wasm, err = s.o.Load(ctx, name); err != nil {
			return &loaded{err: err}
		}
	}
	m, err := s.o.Host.Compile(ctx, wasm)
	return &loaded{m, err}
}

// play advances a creature by one turn, and first runs the turn again if it is to be
// compared.
func (s *stage) play(ctx context.Context, t *recorded) error {
	m := s.cast.acts(t)
	a := s.actor(t.creature)
	if err := a.enter(t); err != nil {
		return err
	}
	if t.judged && t.kind != 0 {
		if err := s.judge(ctx, a, t, m.name); err != nil {
			return err
		}
	}
	a.applyTurn(t)
	s.answer(t)
	return nil
}

// answer notes the requests of other creatures that a turn has answered.
func (s *stage) answer(t *recorded) {
	for i := range t.effects {
		ev := &t.effects[i]
		if asker := journal.InboxOwner(ev.Channel); ev.Kind == journal.EventResult && asker != "" && s.wants(asker) {
			s.actor(asker).learn(ev)
		}
	}
}

func (s *stage) judge(ctx context.Context, a *actor, t *recorded, name string) error {
	p, err := a.rehearse(ctx, t)
	switch {
	case err != nil:
		return err
	case !s.o.only.IsZero():
		s.repeated = newComparison(a, t, name, &p)
		return nil
	case p.gap != nil:
		s.noteUnjudged(t, name, p.gap)
		return nil
	}
	s.result.Turns++
	d := newDifference(a, t, name, p.effects)
	if d.First < 0 {
		return nil
	}
	s.result.Differ++
	if len(s.result.Differences) < MaxDifferences {
		s.result.Differences = append(s.result.Differences, d)
	}
	return nil
}

// newDifference compares the effects of a turn with the recorded ones.
func newDifference(a *actor, t *recorded, name string, replayed []Effect) Difference {
	recorded := t.did(a.labels())
	return Difference{
		Turn: t.event.ID, Creature: t.creature, Name: name, Attempt: t.event.Attempt, Ended: time.Unix(0, t.event.Time).UTC(), Cursor: t.before.Cursor(),
		Delivery: a.delivery(t), Recorded: recorded, Replayed: replayed, First: firstDifference(recorded, replayed),
	}
}

// first is the difference whose turn ended first.
func (s *stage) first() *Difference {
	s.sort()
	return &s.result.Differences[0]
}

func (s *stage) sort() {
	slices.SortStableFunc(s.result.Differences, func(a, b Difference) int { return a.Ended.Compare(b.Ended) })
}

// report is the result, when everything has been read.
func (s *stage) report() (*Report, error) {
	s.sort()
	r := &s.result
	if !s.o.All && r.Differ > 1 {
		r.Differ, r.Differences = 1, r.Differences[:1]
	}
	if len(s.o.Creatures) > 0 && len(s.chosen) == 0 {
		return nil, &abi.Error{
			Code: abi.NotFound, Op: "replay", Message: "the log has no creature " + strings.Join(s.o.Creatures, " or "),
			Remedy: "use the name that terrarium session show prints or, if the log no longer has the name, the id",
		}
	}
	return r, nil
}

// unjudged has what turns that are counted together have in common.
type unjudged struct {
	creature journal.CreatureID
	gap
}

// noteUnjudged counts a turn that was not compared.
func (s *stage) noteUnjudged(t *recorded, name string, g *gap) {
	r := &s.result
	at, ok := s.unjudged[unjudged{t.creature, *g}]
	if !ok {
		at = len(r.Unjudged)
		s.unjudged[unjudged{t.creature, *g}] = at
		r.Unjudged = append(r.Unjudged, Unjudged{Creature: t.creature, Reason: g.reason, Detail: g.detail, First: t.event.ID})
	}
	u := &r.Unjudged[at]
	u.Turns++
	u.Last = t.event.ID
	u.Name = name
}
