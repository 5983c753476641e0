package topology_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/abi"
	. "github.com/seed47132306/terrarium/engine/topology"
)

// counted returns ids that contain the step in which they were made.
type counted struct{ step, graphs, channels int }

func (c *counted) NewGraph() GraphID {
	c.graphs++
	return GraphID(fmt.Sprintf("g%d.%d", c.step, c.graphs))
}

func (c *counted) NewChannel() ChannelID {
	c.channels++
	return ChannelID(fmt.Sprintf("auto%d.%d", c.step, c.channels))
}

// program runs random operations on a state, its model and its mirror.
type program struct {
	fail   func(format string, args ...any)
	draw   func(n int) int // a number below n
	state  *State
	model  *model
	mirror *mirror
	seen   []GraphID
	ran    [][]Op
	// reached holds the cases that the program reached.
	reached map[string]bool
}

func newProgram(draw func(int) int, fail func(string, ...any)) *program {
	return &program{draw: draw, fail: fail, state: New(), model: newModel(), mirror: newMirror(), reached: map[string]bool{}}
}

func (p *program) fatalf(format string, args ...any) {
	var listing strings.Builder
	for i, ops := range p.ran {
		fmt.Fprintf(&listing, "\n%d: %#v", i, ops)
	}
	p.fail("%s\nprogram:%s", fmt.Sprintf(format, args...), &listing)
}

func (p *program) step(n int) {
	ops := []Op{p.operation()}
	for p.draw(8) == 0 && len(ops) < 5 {
		ops = append(ops, p.operation())
	}
	p.ran = append(p.ran, ops)
	before := p.state.Snapshot()
	if p.draw(4) == 0 {
		p.try(n, ops, before)
	}
	next, want, code := p.model.apply(&counted{step: n}, ops...)
	got, err := p.state.Apply(&counted{step: n}, ops...)
	if abi.CodeOf(err) != code {
		p.fatalf("error is %v, model says %v", err, code)
	}
	if err != nil {
		p.checkFailure(err, before)
		return
	}
	p.model = next
	p.checkDeltas(got, want)
	p.reach(ops, got)
	p.checkState()
}

// try applies ops and undoes them.
func (p *program) try(n int, ops []Op, before Snapshot) {
	deltas, undo, err := p.state.Try(&counted{step: n}, ops...)
	if err != nil {
		return
	}
	p.reachTaken(deltas)
	for _, id := range p.seen {
		if now, ok := p.state.Current(id); ok && !slices.Contains(p.state.Graphs(), now) {
			p.fatalf("current of %s is %s, which is not live", id, now)
		}
	}
	undo()
	p.checkUnchanged(before)
}

func (p *program) checkFailure(err error, before Snapshot) {
	var e *abi.Error
	if !errors.As(err, &e) || e.Op == "" || e.Message == "" || e.Remedy == "" {
		p.fatalf("error %#v lacks operation, message or remedy", err)
	}
	p.reachFailure(err)
	p.checkUnchanged(before)
}

// checkUnchanged checks that an operation had no effect.
func (p *program) checkUnchanged(before Snapshot) {
	if after := p.state.Snapshot(); !reflect.DeepEqual(before, after) {
		p.fatalf("undone operation left\n%+v\ninstead of\n%+v", after, before)
	}
	if err := p.state.CheckInternals(); err != nil {
		p.fatalf("undone operation: %v", err)
	}
	p.checkCurrent()
}

func (p *program) checkDeltas(got, want []Delta) {
	for _, d := range got {
		for _, c := range d.Changes {
			if err := p.mirror.apply(c); err != nil {
				p.fatalf("%v", err)
			}
			if c.Kind == GraphAdded {
				p.seen = append(p.seen, c.Graph)
			}
		}
	}
	bare := slices.Clone(got)
	for i := range bare {
		bare[i].Changes = nil
	}
	if !reflect.DeepEqual(bare, want) {
		p.fatalf("deltas are\n%+v\nmodel says\n%+v", bare, want)
	}
}

func (p *program) checkState() {
	got, want := p.state.Snapshot(), p.model.snapshot()
	if !reflect.DeepEqual(got, want) {
		p.fatalf("state is\n%+v\nmodel says\n%+v", got, want)
	}
	if err := p.mirror.equals(got); err != nil {
		p.fatalf("%v", err)
	}
	if err := p.state.CheckInternals(); err != nil {
		p.fatalf("%v", err)
	}
	p.checkCurrent()
	again, err := Restore(got)
	if err != nil {
		p.fatalf("restore: %v", err)
	}
	if third := again.Snapshot(); !reflect.DeepEqual(got, third) {
		p.fatalf("restored state is\n%+v\nsnapshot was\n%+v", third, got)
	}
	p.checkQueries()
}

func (p *program) checkCurrent() {
	for _, id := range p.seen {
		got, ok := p.state.Current(id)
		if want, live := p.model.current(id); got != want || ok != live {
			p.fatalf("current of %s is %q, model says %q", id, got, want)
		}
	}
}

func (p *program) checkQueries() {
	for id := range p.model.graphs {
		g, _ := p.state.Graph(id)
		var creatures []CreatureID
		for _, c := range p.model.members(id) {
			creatures = append(creatures, c.ID)
			if found, _ := p.state.FindCreature(id, c.Name); found != c.ID || p.state.GraphOf(c.ID) != id {
				p.fatalf("creature %s is not found", c.ID)
			}
		}
		var channels []ChannelID
		for _, ch := range p.model.declared(id) {
			channels = append(channels, ch.ID)
			if found, _ := p.state.FindChannel(id, ch.Name); found != ch.ID || p.state.ChannelGraph(ch.ID) != id {
				p.fatalf("channel %s is not found", ch.ID)
			}
		}
		if want := (Graph{id, p.model.graphs[id], creatures, channels}); !reflect.DeepEqual(g, want) {
			p.fatalf("graph is %+v, model says %+v", g, want)
		}
		if born, live := p.state.Born(id); !live || born != g.Born {
			p.fatalf("graph %s began at %d, %v", id, born, live)
		}
		heads := slices.DeleteFunc(slices.Clone(creatures), func(c CreatureID) bool { return !p.state.IsRoot(c) })
		if found := p.state.Roots(id); !slices.Equal(found, heads) {
			p.fatalf("the roots are %v, want %v", found, heads)
		}
		from, to := creatures[0], creatures[len(creatures)-1]
		if got, want := p.state.Connected(from, to), p.model.leading(from, to); !slices.Equal(got, want) {
			p.fatalf("connected %s %s: %v, model says %v", from, to, got, want)
		}
	}
}

func (p *program) creature() CreatureID {
	if p.draw(60) == 0 {
		return "nobody"
	}
	return CreatureID(fmt.Sprintf("c%d", p.draw(14)))
}

func (p *program) channel() ChannelID {
	if known := sortedKeys(p.model.channels); len(known) > 0 && p.draw(10) > 0 {
		return known[p.draw(len(known))]
	}
	return ChannelID(fmt.Sprintf("k%d", p.draw(10)))
}

func (p *program) graph() GraphID {
	if len(p.seen) > 0 && p.draw(3) == 0 {
		return p.seen[p.draw(len(p.seen))]
	}
	if live := sortedKeys(p.model.graphs); len(live) > 0 {
		return live[p.draw(len(live))]
	}
	return "nowhere"
}

func (p *program) name() string {
	return []string{"a", "b", "x", "a~2", "b~2", "a-to-b", "d", "e", "f", ""}[p.draw(10)]
}

func (p *program) alias() string {
	if p.draw(2) == 0 {
		return ""
	}
	return []string{"a", "b", "a~2"}[p.draw(3)]
}

func (p *program) flag() bool { return p.draw(2) == 0 }

func (p *program) direction() Direction {
	if p.draw(80) == 0 {
		return 3
	}
	return Direction(1 + p.draw(2))
}

// settle sometimes sets a separate decision for channels of one name.
func (p *program) settle() map[string]Collision {
	if p.draw(4) > 0 {
		return nil
	}
	return map[string]Collision{p.name(): Collision(p.draw(3))}
}

func (p *program) operation() Op {
	how := Collision(p.draw(3))
	switch p.draw(14) {
	case 0, 1:
		op := AddCreature{
			ID: p.creature(), Name: p.name(), Privileged: p.draw(4) == 0, Root: p.draw(6) == 0, Stopped: p.draw(6) == 0, Paused: p.draw(3) == 0,
		}
		if p.flag() {
			op.Join, op.Parent, op.Direct = p.graph(), p.creature(), p.draw(4) == 0
		}
		for p.draw(3) == 0 && len(op.Edges) < 4 {
			op.Edges = append(op.Edges, Wire{p.channel(), p.direction(), p.alias()})
		}
		return op
	case 2:
		op := RemoveCreature{ID: p.creature()}
		for p.draw(3) == 0 && len(op.With) < 4 {
			op.With = append(op.With, p.creature())
		}
		return op
	case 3, 4:
		op := AddChannel{ID: ChannelID(fmt.Sprintf("k%d", p.draw(10))), Name: p.name(), Report: p.draw(4) == 0, Numbered: p.draw(3) == 0}
		if p.flag() {
			op.Graph = p.graph()
		} else {
			op.With = p.creature()
		}
		return op
	case 5:
		return RemoveChannel{p.channel()}
	case 6, 7:
		op := Connect{From: p.creature(), To: p.creature(), Alias: p.alias(), OnCollision: how}
		switch p.draw(3) {
		case 0:
			op.Channel = p.channel()
		case 1:
			op.Name = p.name()
		}
		op.Settle = p.settle()
		return op
	case 8, 9:
		op := Disconnect{From: p.creature(), To: p.creature()}
		if p.draw(3) == 0 {
			op.Channel = p.channel()
		}
		return op
	case 10, 11, 12:
		return SetEdge{p.creature(), p.channel(), p.direction(), p.draw(3) > 0, p.alias(), how, p.settle()}
	}
	switch p.draw(5) {
	case 3, 4:
		return p.naming()
	case 0:
		return SetStopped{p.creature(), p.flag(), p.draw(3) == 0}
	case 1:
		return SetPrivileged{p.creature(), p.flag()}
	}
	return SetRoot{p.creature(), p.flag()}
}

// naming gives creatures new names, some of them the names of other creatures.
func (p *program) naming() Op {
	var op SetNames
	for len(op.Channels) < 6 && p.draw(3) == 0 { // of bytes that have run out, every draw is 0
		op.Channels = append(op.Channels, ChannelNaming{p.channel(), p.name()})
	}
	for len(op.Names) == 0 || p.draw(3) > 0 && len(op.Names) < 6 {
		n := Naming{ID: p.creature(), Name: p.name()}
		if n.Name == "" && p.draw(4) > 0 {
			n.Name = "a~3"
		}
		op.Names = append(op.Names, n)
		if other := p.creature(); p.flag() { // they exchange names
			mine, _ := p.state.Creature(n.ID)
			its, _ := p.state.Creature(other)
			if mine.Name != "" && its.Name != "" {
				op.Names[len(op.Names)-1].Name = its.Name
				op.Names = append(op.Names, Naming{ID: other, Name: mine.Name})
			}
		}
	}
	return op
}

func TestRandomProgramsAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newProgram(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, t.Fatalf)
		for i := range rapid.IntRange(1, 400).Draw(t, "steps") {
			p.step(i)
		}
	})
}

// TestLongProgramsAgainstModel draws evenly, unlike rapid, which prefers small
// numbers. The seed is the name of the subtest. Together they reach every
// case.
func TestLongProgramsAgainstModel(t *testing.T) {
	reached := map[string]bool{}
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			p := newProgram(random.IntN, t.Fatalf)
			for i := range 1500 {
				p.step(i)
			}
			for name, yes := range p.reached {
				reached[name] = reached[name] || yes
			}
		})
	}
	for _, name := range cases {
		if !reached[name] {
			t.Errorf("no program came by the case %q", name)
		}
	}
}

// TestLargeSparseGraphs turns edges on and off among so many creatures that
// spanning trees are deep, and compares the number of graphs with a full
// search.
func TestLargeSparseGraphs(t *testing.T) {
	const creatures, channels = 400, 500
	random := rand.New(rand.NewPCG(1, 0))
	s := newScenario(t)
	for i := range creatures {
		s.alone(member(i))
	}
	for i := range channels {
		s.do(AddChannel{ID: ChannelID(fmt.Sprint(i)), Graph: s.GraphOf(member(i % creatures)), Name: fmt.Sprint(i)})
	}
	for i := range 12_000 {
		_, err := s.Apply(&counted{step: i + 1}, SetEdge{
			Creature:  member(random.IntN(creatures)),
			Channel:   ChannelID(fmt.Sprint(random.IntN(random.IntN(channels) + 1))), // some much more than others
			Direction: Direction(1 + random.IntN(2)),
			On:        random.IntN(100) < 1+98*(i/3000%2), // growing and shrinking in turn
		})
		if err != nil {
			t.Fatal(err)
		}
		if i%100 > 0 {
			continue
		}
		if err := s.CheckInternals(); err != nil {
			t.Fatal(err)
		}
		snap := s.Snapshot()
		if got, want := len(snap.Graphs), recompute(snap); got != want {
			t.Fatalf("step %d: %d graphs, search finds %d", i, got, want)
		}
		if _, err := Restore(snap); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzProgram reads the choices of a program from bytes.
func FuzzProgram(f *testing.F) {
	f.Add([]byte("\x00\x01\x02"))
	f.Add([]byte(strings.Repeat("the quick brown fox jumps over the lazy dog", 20)))
	f.Fuzz(func(t *testing.T, code []byte) {
		draw := func(n int) int {
			if len(code) == 0 {
				return 0
			}
			b := code[0]
			code = code[1:]
			return int(b) % n
		}
		p := newProgram(draw, t.Fatalf)
		for i := 0; len(code) > 0 && i < 2000; i++ {
			p.step(i)
		}
	})
}
