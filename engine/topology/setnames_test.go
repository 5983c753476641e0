package topology_test

import (
	"testing"

	. "github.com/seed47132306/terrarium/engine/topology"
)

// Names are assigned all at once: a creature can take the name of another that
// is renamed, and only a name that another creature keeps is numbered.
func TestSetNames(t *testing.T) {
	s := New()
	ids := &counted{}
	var ops []Op
	for _, name := range []string{"a", "b", "c", "d"} {
		ops = append(ops, AddCreature{ID: CreatureID(name), Name: name})
	}
	ops = append(ops, Connect{From: "a", To: "b"}, Connect{From: "b", To: "c"}, Connect{From: "c", To: "d"})
	if _, err := s.Apply(ids, ops...); err != nil {
		t.Fatal(err)
	}
	names := func() (out string) {
		for _, id := range []CreatureID{"a", "b", "c", "d"} {
			c, _ := s.Creature(id)
			out += c.Name + " "
		}
		return out
	}
	_, undo, err := s.Try(ids, SetNames{Names: []Naming{{"a", "b"}, {"b", "a"}, {"c", "d"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "b a d~2 d " {
		t.Errorf("names are %s", got)
	}
	undo()
	if got := names(); got != "a b c d " {
		t.Errorf("after undo they are %s", got)
	}
	// A freed name is available to the others in any order.
	for _, c := range []struct {
		names []Naming
		want  string
	}{
		{[]Naming{{"c", "a~2"}, {"a", "b"}, {"b", "a"}}, "b a a~2 d "},
		{[]Naming{{"a", "d"}, {"b", "d~2"}, {"c", "b"}}, "d~2 d~2~2 b d "},
		{[]Naming{{"a", "b"}, {"a", "x"}}, "x b c d "},
		{[]Naming{{"a", "b"}, {"a", "a"}}, "a b c d "},
	} {
		_, undo, err := s.Try(ids, SetNames{Names: c.names})
		if err != nil {
			t.Fatal(err)
		}
		if got := names(); got != c.want {
			t.Errorf("%v makes the names %s, want %s", c.names, got, c.want)
		}
		undo()
		if got := names(); got != "a b c d " {
			t.Errorf("after undo of %v they are %s", c.names, got)
		}
	}
	for _, op := range []SetNames{{Names: []Naming{{"x", "y"}}}, {Names: []Naming{{"a", "z"}, {"b", ""}}}, {Channels: []ChannelNaming{{"x", "y"}}}} {
		if _, err := s.Apply(ids, op); err == nil || names() != "a b c d " {
			t.Errorf("%v answers %v, and names are %s", op, err, names())
		}
	}
}
