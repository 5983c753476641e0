package topology_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/seed47132306/terrarium/engine/topology"
)

// scenario is a state built with readable names: ids equal names.
type scenario struct {
	*State
	t   *testing.T
	ids *counted
}

func newScenario(t *testing.T) *scenario {
	return &scenario{New(), t, &counted{}}
}

// do applies one operation that must succeed.
func (s *scenario) do(op Op) Delta {
	s.t.Helper()
	deltas, err := s.Apply(s.ids, op)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.CheckInternals(); err != nil {
		s.t.Fatal(err)
	}
	return deltas[0]
}

// alone adds creatures, each in its own graph.
func (s *scenario) alone(names ...CreatureID) {
	s.t.Helper()
	for _, name := range names {
		s.do(AddCreature{ID: name, Name: string(name)})
	}
}

// chain adds creatures and connects each to the next on a channel named after
// both.
func (s *scenario) chain(names ...CreatureID) {
	s.t.Helper()
	s.alone(names...)
	for i := range names[1:] {
		s.connect(names[i], names[i+1])
	}
}

func (s *scenario) connect(from, to CreatureID) ChannelID {
	s.t.Helper()
	ch := ChannelID(from + to)
	s.do(AddChannel{ID: ch, Graph: s.GraphOf(from), Name: string(ch)})
	s.do(Connect{From: from, To: to, Channel: ch})
	return ch
}

// edges writes the edges of a channel as "creature>alias" for sending and
// "creature<alias" for listening.
func (s *scenario) edges(id ChannelID) string {
	ch, _ := s.Channel(id)
	var list []string
	for _, e := range ch.Edges {
		list = append(list, string(e.Creature)+map[Direction]string{Listen: "<", Send: ">"}[e.Direction]+e.Alias)
	}
	return strings.Join(list, " ")
}

func (s *scenario) members(of CreatureID) []CreatureID {
	g, _ := s.Graph(s.GraphOf(of))
	return g.Creatures
}

func check[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestNewcomerIsAGraphOfItsOwn(t *testing.T) {
	s := newScenario(t)
	d := s.do(AddCreature{ID: "a", Name: "ant", Parent: "z", Privileged: true})
	check(t, "kind", d.Kind, None)
	check(t, "old", len(d.OldGraphs), 0)
	check(t, "new", d.NewGraphs, []GraphID{"g0.1"})
	check(t, "affected", len(d.Affected), 0)
	got, _ := s.Creature("a")
	check(t, "creature", got, Creature{ID: "a", Name: "ant", Graph: "g0.1", Born: 1, Parent: "z", Privileged: true})
}

func TestJoiningTakesADirectChannel(t *testing.T) {
	tests := map[string]struct {
		parent CreatureID
		flags  []Op
		sender CreatureID
	}{
		"named parent":      {parent: "c", flags: []Op{SetRoot{"b", true}}, sender: "c"},
		"parent elsewhere":  {parent: "x", flags: []Op{SetRoot{"b", true}}, sender: "b"},
		"root":              {flags: []Op{SetRoot{"c", true}, SetPrivileged{"b", true}}, sender: "c"},
		"eldest privileged": {flags: []Op{SetPrivileged{"c", true}, SetPrivileged{"b", true}}, sender: "b"},
		"eldest":            {sender: "a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.chain("a", "b", "c")
			s.alone("x")
			for _, op := range test.flags {
				s.do(op)
			}
			d := s.do(AddCreature{ID: "n", Name: "new", Join: s.GraphOf("a"), Parent: test.parent})
			check(t, "edges", s.edges(d.Channel), string(test.sender)+">new n<new")
			check(t, "graph", s.GraphOf("n"), s.GraphOf("a"))
		})
	}
}

func TestDirectChannelGivesWay(t *testing.T) {
	s := newScenario(t)
	s.alone("a")
	s.do(AddChannel{ID: "k", Graph: s.GraphOf("a"), Name: "new"})
	d := s.do(AddCreature{ID: "n", Name: "new", Join: s.GraphOf("a")})
	ch, _ := s.Channel(d.Channel)
	check(t, "name", ch.Name, "new~2")
}

func TestNoDirectChannelWhenAWireLeadsThere(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b")
	d := s.do(AddCreature{ID: "n", Name: "n", Join: s.GraphOf("a"), Edges: []Wire{{"ab", Listen, "news"}}})
	check(t, "channel", d.Channel, "")
	check(t, "edges", s.edges("ab"), "a>ab b<ab n<news")
}

func TestADirectChannelBesidesAWire(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b")
	d := s.do(AddCreature{ID: "n", Name: "n", Parent: "b", Join: s.GraphOf("a"), Edges: []Wire{{"ab", Listen, "news"}}, Direct: true})
	check(t, "edges", s.edges(d.Channel), "b>n n<n")
	check(t, "edges", s.edges("ab"), "a>ab b<ab n<news")
}

func TestWiresMergeGraphs(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b")
	s.chain("c", "d", "e")
	s.chain("f", "g")
	two, three, last := s.GraphOf("a"), s.GraphOf("c"), s.GraphOf("f")
	d := s.do(AddCreature{ID: "n", Name: "n", Edges: []Wire{
		{Channel: "fg", Direction: Send}, {Channel: "ab", Direction: Send}, {Channel: "cd", Direction: Listen},
	}})
	check(t, "kind", d.Kind, Merge)
	check(t, "old", d.OldGraphs, []GraphID{three, two, last})
	check(t, "new", d.NewGraphs, []GraphID{three})
	check(t, "affected", d.Affected, []CreatureID{"a", "b", "f", "g"})
	for _, id := range []GraphID{two, three, last} {
		now, ok := s.Current(id)
		check(t, "current", now, three)
		check(t, "ok", ok, true)
	}
}

func TestAWireToAChannelWithoutEdgesLeadsNowhere(t *testing.T) {
	s := newScenario(t)
	s.alone("a")
	s.do(AddChannel{ID: "k", Graph: s.GraphOf("a"), Name: "k"})
	d := s.do(AddCreature{ID: "n", Name: "n", Edges: []Wire{{Channel: "k", Direction: Listen}}})
	check(t, "kind", d.Kind, None)
	check(t, "apart", s.GraphOf("n") != s.GraphOf("a"), true)
	check(t, "channel came along", s.ChannelGraph("k"), s.GraphOf("n"))
	check(t, "old", d.OldGraphs, []GraphID{s.GraphOf("a")})
	check(t, "new", d.NewGraphs, []GraphID{s.GraphOf("n"), s.GraphOf("a")})
}

// TestNewcomerOnAnEmptyChannelFirst wires a new creature to an empty channel
// before it is wired to others. CheckInternals checks that all are in one
// tree.
func TestNewcomerOnAnEmptyChannelFirst(t *testing.T) {
	for _, join := range []bool{false, true} {
		s := newScenario(t)
		s.chain("a", "b")
		s.do(AddChannel{ID: "k", Graph: s.GraphOf("a"), Name: "k"})
		op := AddCreature{ID: "n", Name: "n", Edges: []Wire{{Channel: "k", Direction: Listen}, {Channel: "ab", Direction: Send}}}
		if join {
			op.Join = s.GraphOf("a")
		}
		s.do(op)
		check(t, "members", s.members("n"), []CreatureID{"a", "b", "n"})
		s.do(Disconnect{From: "n", To: "b"})
		check(t, "apart again", s.members("n"), []CreatureID{"n"})
	}
}

func TestSurvivorOfAMerge(t *testing.T) {
	tests := map[string]struct {
		build func(s *scenario)
		want  CreatureID // whose graph survives a→x
	}{
		"more creatures":  {func(s *scenario) { s.alone("a"); s.chain("x", "y") }, "x"},
		"elder of equals": {func(s *scenario) { s.chain("x", "y"); s.chain("a", "b") }, "x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			test.build(s)
			want, old := s.GraphOf(test.want), s.GraphOf("a")
			d := s.do(Connect{From: "a", To: "x"})
			check(t, "survivor", d.NewGraphs, []GraphID{want})
			check(t, "old", d.OldGraphs, []GraphID{want, old})
		})
	}
}

func TestSmallerIDSurvivesAmongTwins(t *testing.T) {
	s, err := Restore(Snapshot{
		Graphs: []Graph{{ID: "g2", Born: 1}, {ID: "g1", Born: 1}},
		Creatures: []Creature{
			{ID: "a", Name: "a", Graph: "g2", Born: 1}, {ID: "b", Name: "b", Graph: "g1", Born: 1},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Apply(&counted{}, Connect{From: "a", To: "b"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "old", d[0].OldGraphs, []GraphID{"g1", "g2"})
}

func TestCollisions(t *testing.T) {
	build := func(t *testing.T) *scenario {
		s := newScenario(t)
		s.alone("a", "b", "c", "y")
		s.do(AddCreature{ID: "x1", Name: "a"})
		s.do(AddCreature{ID: "x2", Name: "a~2"})
		s.do(Connect{From: "a", To: "b", Name: "news"})
		s.do(Connect{From: "b", To: "c", Name: "report"})
		s.do(Connect{From: "x1", To: "x2", Name: "news", Alias: "mine"})
		return s
	}
	t.Run("rename", func(t *testing.T) {
		s := build(t)
		news, _ := s.FindChannel(s.GraphOf("x1"), "news")
		d := s.do(Connect{From: "x1", To: "a", Name: "bridge"})
		check(t, "renamed", d.Renamed, []Renaming{
			{Creature: "x1", Old: "a", New: "a~3"}, {Channel: news, Old: "news", New: "news~2"},
		})
		check(t, "aliases stay", s.edges(news), "x1>mine x2<mine")
	})
	t.Run("unify", func(t *testing.T) {
		s := build(t)
		survivor, _ := s.FindChannel(s.GraphOf("a"), "news")
		absorbed, _ := s.FindChannel(s.GraphOf("x1"), "news")
		d := s.do(Connect{From: "x2", To: "a", Channel: absorbed, OnCollision: Unify})
		check(t, "unified", d.Unified, []Unification{{survivor, absorbed}})
		check(t, "channel", d.Channel, survivor)
		check(t, "edges", s.edges(survivor), "a>news b<news x1>mine x2<mine x2>news a<news")
		check(t, "renamed", d.Renamed, []Renaming{{Creature: "x1", Old: "a", New: "a~3"}})
		_, ok := s.Channel(absorbed)
		check(t, "absorbed exists", ok, false)
	})
	t.Run("name by name", func(t *testing.T) {
		s := build(t)
		survivor, _ := s.FindChannel(s.GraphOf("a"), "news")
		absorbed, _ := s.FindChannel(s.GraphOf("x1"), "news")
		s.do(AddChannel{ID: "r", Graph: s.GraphOf("x1"), Name: "report"})
		d := s.do(Connect{From: "x1", To: "a", Name: "bridge", OnCollision: Unify, Settle: map[string]Collision{"report": Rename}})
		check(t, "unified", d.Unified, []Unification{{survivor, absorbed}})
		check(t, "renamed", d.Renamed, []Renaming{{Creature: "x1", Old: "a", New: "a~3"}, {Channel: "r", Old: "report", New: "report~2"}})
	})
	t.Run("report is never unified", func(t *testing.T) {
		s := build(t)
		s.do(AddChannel{ID: "r", Graph: s.GraphOf("x1"), Name: "report", Report: true})
		d := s.do(Connect{From: "x1", To: "a", Name: "bridge", OnCollision: Unify})
		check(t, "unified", len(d.Unified), 1)
		check(t, "last renamed", d.Renamed[len(d.Renamed)-1], Renaming{Channel: "r", Old: "report", New: "report~2"})
	})
}

func TestSendAliasesAreUniqueAndListenAliasesNeedNotBe(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b")
	s.do(AddChannel{ID: "k", Graph: s.GraphOf("a"), Name: "k"})
	s.do(SetEdge{Creature: "a", Channel: "k", Direction: Send, On: true, Alias: "out"})
	s.do(SetEdge{Creature: "b", Channel: "k", Direction: Listen, On: true, Alias: "ab"})
	check(t, "k", s.edges("k"), "a>out b<ab")
	s.do(AddChannel{ID: "out", Graph: s.GraphOf("a"), Name: "out"})
	s.do(Connect{From: "a", To: "b", Channel: "out"})
	check(t, "out", s.edges("out"), "a>out~2 b<out")
}

func TestConnectChoosesTheChannel(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b")
	d := s.do(Connect{From: "a", To: "b"})
	check(t, "the one that leads there", d.Channel, "ab")
	check(t, "changes", len(d.Changes), 0)
	d = s.do(Connect{From: "b", To: "a"})
	ch, _ := s.Channel(d.Channel)
	check(t, "made of both names", ch.Name, "b-to-a")
	d = s.do(Connect{From: "b", To: "a", Name: "ab"})
	check(t, "by name", d.Channel, "ab")
	check(t, "edges", s.edges("ab"), "a>ab b<ab b>ab a<ab")
	d = s.do(Connect{From: "a", To: "a", Name: "self"})
	check(t, "with itself", s.edges(d.Channel), "a>self a<self")
}

func TestDisconnectCutsAPairOnly(t *testing.T) {
	tests := map[string]struct {
		senders, listeners []CreatureID
		edges, detour      string
	}{
		"only sender: the listener goes":       {[]CreatureID{"a"}, []CreatureID{"b", "c"}, "a>k c<k", ""},
		"only listener: the sender goes":       {[]CreatureID{"a", "c"}, []CreatureID{"b"}, "c>k b<k", ""},
		"sender listens itself":                {[]CreatureID{"a", "c"}, []CreatureID{"a", "b"}, "c>k a<k b<k", ""},
		"others: the sender gets a new one":    {[]CreatureID{"a", "c"}, []CreatureID{"b", "d"}, "c>k b<k d<k", "a>k d<k"},
		"and goes on listening to the old one": {[]CreatureID{"a", "c"}, []CreatureID{"a", "b", "d"}, "c>k a<k b<k d<k", "a>k d<k"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.chain("a", "b", "c", "d")
			for _, op := range []Op{RemoveChannel{"ab"}, AddChannel{ID: "k", Graph: s.GraphOf("a"), Name: "k"}} {
				s.do(op)
			}
			for _, c := range test.senders {
				s.do(SetEdge{Creature: c, Channel: "k", Direction: Send, On: true})
			}
			for _, c := range test.listeners {
				s.do(SetEdge{Creature: c, Channel: "k", Direction: Listen, On: true})
			}
			d := s.do(Disconnect{From: "a", To: "b"})
			check(t, "old channel", s.edges("k"), test.edges)
			check(t, "took apart", d.Channels[0], "k")
			check(t, "new channel", s.edges(d.Channels[1]), test.detour)
			check(t, "still leads there", len(s.Connected("a", "b")), 0)
		})
	}
}

func TestDisconnectEndsEveryConnectionOfThePair(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b")
	s.do(Connect{From: "a", To: "b", Name: "more"})
	more, _ := s.FindChannel(s.GraphOf("a"), "more")
	d := s.do(Disconnect{From: "a", To: "b"})
	check(t, "channels", d.Channels, []ChannelID{"ab", more, "", ""})
	check(t, "kind", d.Kind, Split)
}

func TestWhoKeepsTheIDOnASplit(t *testing.T) {
	tests := map[string]struct {
		chain  []CreatureID
		root   CreatureID
		remove CreatureID
		keeps  CreatureID
		others []CreatureID // one of each other piece, in order
	}{
		"most creatures":   {[]CreatureID{"a", "b", "c", "d"}, "a", "b", "c", []CreatureID{"a"}},
		"root of equals":   {[]CreatureID{"a", "b", "c"}, "c", "b", "c", []CreatureID{"a"}},
		"eldest of equals": {[]CreatureID{"a", "b", "c"}, "", "b", "a", []CreatureID{"c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.chain(test.chain...)
			if test.root != "" {
				s.do(SetRoot{test.root, true})
			}
			g := s.GraphOf("a")
			d := s.do(RemoveCreature{ID: test.remove})
			check(t, "kind", d.Kind, Split)
			check(t, "old", d.OldGraphs, []GraphID{g})
			check(t, "keeps", s.GraphOf(test.keeps), g)
			want := []GraphID{g}
			for _, c := range test.others {
				want = append(want, s.GraphOf(c))
			}
			check(t, "new", d.NewGraphs, want)
		})
	}
}

func TestRemovalIntoManyPieces(t *testing.T) {
	s := newScenario(t)
	s.alone("hub", "a", "b", "c", "d")
	for _, c := range []CreatureID{"a", "b", "c"} {
		s.connect("hub", c)
	}
	s.connect("c", "d")
	s.do(AddChannel{ID: "idle", Graph: s.GraphOf("hub"), Name: "idle"})
	g := s.GraphOf("hub")
	d := s.do(RemoveCreature{ID: "hub"})
	check(t, "new", d.NewGraphs, []GraphID{g, s.GraphOf("a"), s.GraphOf("b")})
	check(t, "affected", d.Affected, []CreatureID{"a", "b"})
	check(t, "the most keep the id", s.members("c"), []CreatureID{"c", "d"})
	check(t, "channel without edges", s.ChannelGraph("idle"), g)
	check(t, "channel of a piece", s.ChannelGraph("huba"), s.GraphOf("a"))
}

func TestLastMemberEndsTheGraph(t *testing.T) {
	s := newScenario(t)
	s.alone("a")
	g := s.GraphOf("a")
	s.do(AddChannel{ID: "k", Graph: g, Name: "k"})
	d := s.do(RemoveCreature{ID: "a"})
	check(t, "old", d.OldGraphs, []GraphID{g})
	check(t, "new", len(d.NewGraphs), 0)
	check(t, "changes", d.Changes, []Change{
		{Kind: CreatureRemoved, Creature: "a", Graph: g},
		{Kind: ChannelRemoved, Channel: "k", Graph: g},
		{Kind: GraphEnded, Graph: g},
	})
	_, ok := s.Current(g)
	check(t, "current", ok, false)
}

func TestChannelWithoutEdgesMovesToWhoTurnsOneOn(t *testing.T) {
	s := newScenario(t)
	s.alone("a", "b")
	s.do(AddChannel{ID: "k", Graph: s.GraphOf("b"), Name: "k"})
	d := s.do(SetEdge{Creature: "a", Channel: "k", Direction: Listen, On: true})
	check(t, "kind", d.Kind, None)
	check(t, "channel", s.ChannelGraph("k"), s.GraphOf("a"))
	d = s.do(SetEdge{Creature: "b", Channel: "k", Direction: Send, On: true})
	check(t, "kind", d.Kind, Merge)
	check(t, "members", s.members("a"), []CreatureID{"a", "b"})
}

func TestFlags(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b")
	for _, op := range []Op{SetStopped{"a", true, true}, SetPrivileged{"a", true}, SetRoot{"a", true}} {
		check(t, "changes", s.do(op).Changes, []Change{{Kind: FlagsChanged, Creature: "a"}})
		check(t, "changes the second time", len(s.do(op).Changes), 0)
	}
	a, _ := s.Creature("a")
	check(t, "flags", []bool{a.Stopped, a.Paused, a.Privileged, a.Root}, []bool{true, true, true, true})
	check(t, "edges stay", s.edges("ab"), "a>ab b<ab")
}

func TestQueries(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b")
	s.alone("c")
	check(t, "graphs", s.Graphs(), []GraphID{s.GraphOf("a"), s.GraphOf("c")})
	check(t, "creatures", s.Creatures(), []CreatureID{"a", "b", "c"})
	creatures, channels, graphs := s.Counts()
	check(t, "counts", []int{creatures, channels, graphs}, []int{3, 1, 2})
	creatures, channels = s.Size(s.GraphOf("a"))
	check(t, "size", []int{creatures, channels}, []int{2, 1})
	a, _ := s.Creature("a")
	check(t, "edges of a", a.Edges, []Edge{{"a", "ab", Send, "ab"}})
	check(t, "nobody's graph", s.GraphOf("nobody"), "")
	_, ok := s.Graph("nowhere")
	check(t, "nowhere", ok, false)
	check(t, "kinds", []string{None.String(), Merge.String(), Split.String()}, []string{"none", "merge", "split"})
}

func TestBatchIsAllOrNothing(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b")
	s.chain("x", "y")
	before, g := s.Snapshot(), s.GraphOf("x")
	_, err := s.Apply(s.ids,
		Connect{From: "a", To: "x", OnCollision: Rename},
		RemoveCreature{ID: "b"},
		AddCreature{ID: "n", Name: "n", Join: g},
		RemoveCreature{ID: "nobody"},
	)
	if err == nil || !strings.Contains(err.Error(), "operation 4 of 4") {
		t.Errorf("error is %v", err)
	}
	check(t, "state", s.Snapshot(), before)
	now, ok := s.Current(g)
	check(t, "current", now, g)
	check(t, "live", ok, true)
	if err := s.CheckInternals(); err != nil {
		t.Error(err)
	}
	check(t, "graphs", len(slices.Compact(s.Graphs())), 2)
}

func TestSomeOfAGraph(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b", "c")
	s.do(SetPrivileged{"c", true})
	g := s.GraphOf("a")
	full, _ := s.Graph(g)
	for most := range len(full.Creatures) + 2 {
		var creatures, channels []string
		some, ways := s.Some(g, most)
		for _, c := range some {
			creatures = append(creatures, string(c.ID))
		}
		for _, ch := range ways {
			channels = append(channels, string(ch.ID))
		}
		check(t, "creatures", strings.Join(creatures, " "), strings.Join(strings.Fields("a b c")[:min(most, 3)], " "))
		check(t, "channels", strings.Join(channels, " "), strings.Join(strings.Fields("ab bc")[:min(most, 2)], " "))
	}
	some, total := s.SomePrivileged(g, 9)
	check(t, "the privileged ones", len(some) == 1 && total == 1 && some[0].Name == "c", true)
	none, total := s.SomePrivileged("gone", 9)
	check(t, "of no graph", len(none)+total, 0)
}
