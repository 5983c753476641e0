package topology_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	. "github.com/seed47132306/terrarium/engine/topology"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares the texts of errors with testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update rewrites it); got\n%s", path, got)
	}
}

func describe(title string, err error) string {
	var e *abi.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("%s\n  NO ERROR: %v\n", title, err)
	}
	return fmt.Sprintf("%s\n  %s: %v\n  %s\n", title, e.Code, e, strings.Join(e.IDList(), " "))
}

// repeating returns the same ids again and again.
type repeating struct{}

func (repeating) NewGraph() GraphID     { return "g0.1" }
func (repeating) NewChannel() ChannelID { return "ab" }

func TestErrors(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b")
	s.chain("c", "d")
	s.alone("e")
	s.do(AddCreature{ID: "a2", Name: "a", Edges: []Wire{{Channel: "cd", Direction: Listen}}})
	s.do(AddChannel{ID: "ab2", Graph: s.GraphOf("c"), Name: "ab"})
	s.do(AddChannel{ID: "idle", Graph: s.GraphOf("e"), Name: "ab"})
	s.do(SetEdge{Creature: "a", Channel: "idle", Direction: Send, On: true})
	s.do(SetEdge{Creature: "a", Channel: "idle", Direction: Send, On: false})
	ab, cd := s.GraphOf("a"), s.GraphOf("c")
	tests := []struct {
		title string
		ops   []Op
	}{
		{"creature without id", []Op{AddCreature{Name: "n"}}},
		{"creature without name", []Op{AddCreature{ID: "n"}}},
		{"creature id taken", []Op{AddCreature{ID: "a", Name: "n"}}},
		{"creature name taken", []Op{AddCreature{ID: "n", Name: "a", Join: ab}}},
		{"join nowhere", []Op{AddCreature{ID: "n", Name: "n", Join: "nowhere"}}},
		{"wire to nothing", []Op{AddCreature{ID: "n", Name: "n", Edges: []Wire{{Channel: "nothing", Direction: Send}}}}},
		{"wire in no direction", []Op{AddCreature{ID: "n", Name: "n", Edges: []Wire{{Channel: "ab"}}}}},
		{"two wires of one alias", []Op{AddCreature{ID: "n", Name: "n", Edges: []Wire{{"ab", Send, "out"}, {"cd", Send, "out"}}}}},
		{"remove absent", []Op{RemoveCreature{ID: "absent"}}},
		{"channel without id", []Op{AddChannel{Graph: ab, Name: "n"}}},
		{"channel without name", []Op{AddChannel{ID: "n", Graph: ab}}},
		{"channel id taken", []Op{AddChannel{ID: "ab", Graph: ab, Name: "n"}}},
		{"channel name taken", []Op{AddChannel{ID: "n", Graph: ab, Name: "ab"}}},
		{"channel nowhere", []Op{AddChannel{ID: "n", Graph: "nowhere", Name: "n"}}},
		{"channel with absent", []Op{AddChannel{ID: "n", With: "absent", Name: "n"}}},
		{"remove nothing", []Op{RemoveChannel{"nothing"}}},
		{"connect absent", []Op{Connect{From: "absent", To: "a"}}},
		{"connect to absent", []Op{Connect{From: "a", To: "absent"}}},
		{"connect on nothing", []Op{Connect{From: "a", To: "b", Channel: "nothing"}}},
		{"connect on a third graph's channel", []Op{Connect{From: "a", To: "e", Channel: "cd"}}},
		{"connect with a taken alias", []Op{Connect{From: "a", To: "b", Name: "new", Alias: "ab"}}},
		{"connect, rejecting collisions", []Op{Connect{From: "a", To: "c", OnCollision: Reject}}},
		{"disconnect absent", []Op{Disconnect{From: "absent", To: "a"}}},
		{"disconnect strangers", []Op{Disconnect{From: "b", To: "a"}}},
		{"disconnect on nothing", []Op{Disconnect{From: "a", To: "b", Channel: "nothing"}}},
		{"disconnect on another channel", []Op{Disconnect{From: "a", To: "b", Channel: "cd"}}},
		{"edge of absent", []Op{SetEdge{Creature: "absent", Channel: "ab", Direction: Send, On: true}}},
		{"edge to nothing", []Op{SetEdge{Creature: "a", Channel: "nothing", Direction: Listen}}},
		{"edge in no direction", []Op{SetEdge{Creature: "a", Channel: "ab", On: true}}},
		{"edge, rejecting collisions", []Op{SetEdge{Creature: "a", Channel: "cd", Direction: Send, On: true, OnCollision: Reject}}},
		{"edge to an idle channel, rejecting", []Op{SetEdge{Creature: "a", Channel: "ab2", Direction: Send, On: true, OnCollision: Reject}}},
		{"stop absent", []Op{SetStopped{"absent", true, false}}},
		{"start absent", []Op{SetStopped{"absent", false, false}}},
		{"promote absent", []Op{SetPrivileged{"absent", true}}},
		{"demote absent", []Op{SetPrivileged{"absent", false}}},
		{"root absent", []Op{SetRoot{"absent", true}}},
		{"no operation", []Op{nil}},
		{"pointer to an operation", []Op{&RemoveCreature{ID: "a"}}},
		{"second of three", []Op{RemoveCreature{ID: "a"}, RemoveCreature{ID: "a"}, RemoveCreature{ID: "b"}}},
	}
	var texts strings.Builder
	before := s.Snapshot()
	for _, test := range tests {
		_, err := s.Apply(s.ids, test.ops...)
		texts.WriteString(describe(test.title, err))
		check(t, test.title, s.Snapshot(), before)
	}
	for _, op := range []Op{
		AddCreature{ID: "n", Name: "n"},
		AddCreature{ID: "n", Name: "n", Join: ab},
		RemoveChannel{"cd"},
		Connect{From: "b", To: "a"},
	} {
		_, err := s.Apply(repeating{}, op)
		texts.WriteString(describe(fmt.Sprintf("used ids for %T", op), err))
		check(t, "used ids", s.Snapshot(), before)
	}
	check(t, "graphs", slices.Contains(s.Graphs(), cd), true)
	golden(t, "errors.txt", texts.String())
}

func TestRestoreErrors(t *testing.T) {
	good := func() Snapshot {
		return Snapshot{
			Graphs:    []Graph{{ID: "g", Born: 1}, {ID: "h", Born: 2}},
			Creatures: []Creature{{ID: "a", Name: "a", Graph: "g", Born: 1}, {ID: "b", Name: "b", Graph: "g", Born: 2}, {ID: "x", Name: "a", Graph: "h", Born: 3}},
			Channels:  []Channel{{ID: "k", Name: "k", Graph: "g", Born: 1}, {ID: "l", Name: "l", Graph: "g", Born: 2}},
			Edges:     []Edge{{"a", "k", Send, "k"}, {"b", "k", Listen, "k"}},
		}
	}
	if _, err := Restore(good()); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		title string
		spoil func(s *Snapshot)
	}{
		{"graph without id", func(s *Snapshot) { s.Graphs[0].ID = "" }},
		{"graph twice", func(s *Snapshot) { s.Graphs[1].ID = "g" }},
		{"graph without members", func(s *Snapshot) { s.Graphs = append(s.Graphs, Graph{ID: "i"}) }},
		{"creature without id", func(s *Snapshot) { s.Creatures[0].ID = "" }},
		{"creature without name", func(s *Snapshot) { s.Creatures[0].Name = "" }},
		{"creature twice", func(s *Snapshot) { s.Creatures[1].ID = "a" }},
		{"creature name twice", func(s *Snapshot) { s.Creatures[1].Name = "a" }},
		{"creature nowhere", func(s *Snapshot) { s.Creatures[1].Graph = "i" }},
		{"channel without id", func(s *Snapshot) { s.Channels[0].ID = "" }},
		{"channel without name", func(s *Snapshot) { s.Channels[0].Name = "" }},
		{"channel twice", func(s *Snapshot) { s.Channels[1].ID = "k" }},
		{"channel name twice", func(s *Snapshot) { s.Channels[1].Name = "k" }},
		{"channel nowhere", func(s *Snapshot) { s.Channels[1].Graph = "i" }},
		{"edge of absent", func(s *Snapshot) { s.Edges[0].Creature = "absent" }},
		{"edge to nothing", func(s *Snapshot) { s.Edges[0].Channel = "nothing" }},
		{"edge in no direction", func(s *Snapshot) { s.Edges[0].Direction = 0 }},
		{"edge without alias", func(s *Snapshot) { s.Edges[0].Alias = "" }},
		{"edge twice", func(s *Snapshot) { s.Edges = append(s.Edges, s.Edges[0]) }},
		{"edge across graphs", func(s *Snapshot) { s.Edges[0].Creature = "x" }},
		{"send alias twice", func(s *Snapshot) { s.Edges = append(s.Edges, Edge{"a", "l", Send, "k"}) }},
		{"graph in two pieces", func(s *Snapshot) { s.Edges = s.Edges[:1] }},
	}
	var texts strings.Builder
	for _, test := range tests {
		snap := good()
		test.spoil(&snap)
		_, err := Restore(snap)
		texts.WriteString(describe(test.title, err))
	}
	golden(t, "restore_errors.txt", texts.String())
}
