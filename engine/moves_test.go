package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// garden is a deployment of creatures that listen on one channel. Members are named like
// their addresses.
func garden(channel string, creatures ...string) *deploy.Deployment {
	name := func(address string) string { _, n, _ := strings.Cut(address, "."); return n }
	d := &deploy.Deployment{Name: "garden", Channels: []deploy.ChannelSpec{{Address: channel, Name: name(channel)}}}
	for _, address := range creatures {
		c := spec(name(address), "sink")
		c.Address, c.Listen = address, []deploy.WireSpec{{Channel: channel}}
		d.Creatures = append(d.Creatures, c)
	}
	return d
}

func moving(d *deploy.Deployment, pairs ...string) *deploy.Deployment {
	for i := 0; i < len(pairs); i += 2 {
		d.Moved = append(d.Moved, deploy.Move{From: pairs[i], To: pairs[i+1]})
	}
	slices.SortFunc(d.Moved, func(a, b deploy.Move) int { return strings.Compare(a.From, b.From) })
	return d
}

// restarts are what happens between two applications of a recipe.
var restarts = map[string]func(*saved){
	"while it runs": func(*saved) {}, "after a restart": func(s *saved) { s.shut(); s.open() }, "restored": func(s *saved) { s.reopen() },
}

// A creature or channel that a recipe moves keeps its id, and with it its state, cursors and
// history: while it runs, and after a restart. The plan shows the move. Applying the same recipe
// again changes nothing. A creature that no move concerns starts over.
func TestMovedMembersContinue(t *testing.T) {
	for how, restart := range restarts {
		t.Run(how, func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			before := s.apply(garden("channel.in", "creature.a", "creature.b"))
			s.send(before.Channels["channel.in"], "one")
			s.wait()
			restart(s)
			next := func() *deploy.Deployment {
				return moving(garden("channel.out", "creature.c", "creature.d"), "creature.a", "creature.x", "creature.x", "creature.c", "channel.in", "channel.out")
			}
			plan, err := s.Plan(t.Context(), next())
			if err != nil {
				t.Fatal(err)
			}
			moved := map[string]string{}
			for _, c := range plan.Creatures {
				moved[c.Address+" "+string(c.Action)] = c.MovedFrom
			}
			for _, ch := range plan.Channels {
				moved[ch.Address+" "+string(ch.Action)] = ch.MovedFrom
			}
			want := map[string]string{"creature.c resume": "creature.a", "creature.b remove": "", "creature.d create": "", "channel.out resume": "channel.in"}
			if diff := cmp.Diff(want, moved); diff != "" {
				t.Errorf("the plan (-want +got):\n%s", diff)
			}
			after := s.apply(next())
			for was, is := range map[string]string{"creature.a": "creature.c"} {
				if before.Creatures[was] != after.Creatures[is] {
					t.Errorf("%s was %s, but %s is %s", was, before.Creatures[was], is, after.Creatures[is])
				}
			}
			if before.Channels["channel.in"] != after.Channels["channel.out"] {
				t.Errorf("the channel was %v, but is %v", before.Channels, after.Channels)
			}
			check := func() {
				t.Helper()
				found := map[string]string{}
				for _, g := range s.status() {
					for _, c := range g.Creatures {
						found[c.Address] = c.Name
					}
					for _, ch := range g.Channels {
						found[ch.Address] = ch.Name
						if ch.ID == after.Channels["channel.out"] && ch.Head != 1 {
							t.Errorf("the channel has %d messages", ch.Head)
						}
					}
				}
				if diff := cmp.Diff(map[string]string{"creature.c": "c", "creature.d": "d", "channel.out": "out"}, found); diff != "" {
					t.Errorf("members (-want +got):\n%s", diff)
				}
			}
			check()
			nothingLeft(t, s, []*deploy.Deployment{next()})
			s.reopen()
			nothingLeft(t, s, []*deploy.Deployment{next()})
			s.apply(next())
			check()
		})
	}
}

// A creature that has handled a message before its channel moved does not get it again.
func TestCursorsFollowMoves(t *testing.T) {
	s := newSaved(t, engine.Options{})
	before := s.apply(garden("channel.in", "creature.a"))
	channel := before.Channels["channel.in"]
	send := func(text string) {
		t.Helper()
		s.send(channel, text)
		s.wait()
	}
	send("one")
	cursor := func() uint64 {
		for _, g := range s.status() {
			for _, c := range g.Creatures {
				return c.Cursors[channel].Seq
			}
		}
		return 0
	}
	if got := cursor(); got != 1 {
		t.Fatalf("the cursor is %d, want 1", got)
	}
	s.apply(moving(garden("channel.out", "creature.b"), "creature.a", "creature.b", "channel.in", "channel.out"))
	s.wait()
	if got := cursor(); got != 1 {
		t.Errorf("after the move the cursor is %d, want 1", got)
	}
	send("two")
	s.reopen()
	s.apply(moving(garden("channel.out", "creature.b"), "creature.a", "creature.b", "channel.in", "channel.out"))
	if got := cursor(); got != 2 {
		t.Errorf("after a restart the cursor is %d, want 2", got)
	}
}

// Moves that lead two members to one address are refused, and nothing changes.
func TestMovesThatClashAreRefused(t *testing.T) {
	for name, d := range map[string]*deploy.Deployment{
		"it exists":       moving(garden("channel.in", "creature.b"), "creature.a", "creature.b"),
		"two go to one":   moving(garden("channel.in", "creature.c"), "creature.a", "creature.c", "creature.b", "creature.c"),
		"through another": moving(garden("channel.in", "creature.c"), "creature.a", "creature.b", "creature.b", "creature.c"),
	} {
		for how, restart := range restarts {
			t.Run(name+" "+how, func(t *testing.T) {
				s := newSaved(t, engine.Options{})
				was := garden("channel.in", "creature.a", "creature.b")
				s.apply(was)
				restart(s)
				_, err := s.Apply(t.Context(), d)
				if abi.CodeOf(err) != abi.Conflict {
					t.Errorf("Apply returns %v, want conflict", err)
				}
				if _, perr := s.Plan(t.Context(), d); abi.CodeOf(perr) != abi.Conflict {
					t.Errorf("Plan returns %v", perr)
				}
				nothingLeft(t, s, []*deploy.Deployment{was})
			})
		}
	}
}

// A plan that removes one thing and creates another of the same kind says that a moved
// block may be missing. It says nothing where several would fit.
func TestPlansSuggestMoves(t *testing.T) {
	for name, c := range map[string]struct {
		before, after *deploy.Deployment
		want          []string
	}{
		"a creature":       {garden("channel.in", "creature.a", "creature.b"), garden("channel.in", "creature.c", "creature.b"), []string{"creature.a creature.c"}},
		"a channel":        {garden("channel.in", "creature.a"), garden("channel.out", "creature.a"), []string{"channel.in channel.out"}},
		"several fit":      {garden("channel.in", "creature.a", "creature.b"), garden("channel.in", "creature.c", "creature.d"), nil},
		"all instances":    {garden("channel.in", `creature.a["x"]`, `creature.a["y"]`), garden("channel.in", `creature.b["x"]`, `creature.b["y"]`), []string{"creature.a creature.b"}},
		"other instances":  {garden("channel.in", `creature.a["x"]`), garden("channel.in", `creature.a["y"]`), nil},
		"nothing to match": {garden("channel.in", "creature.a"), garden("channel.in", "creature.a", "creature.b"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			s.apply(c.before)
			plan, err := s.Plan(t.Context(), c.after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range plan.Hints {
				got = append(got, h.From+" "+h.To)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("hints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNowAt(t *testing.T) {
	d := moving(&deploy.Deployment{}, "creature.a", "creature.b", "creature.b", "creature.c", `creature.m["x"]`, "creature.single", "creature.m", "creature.n",
		"creature.one", `creature.many["k"]`, "recipe.r", "recipe.s", `recipe.t["a"]`, "recipe.u", "recipe.r.channel.x", "channel.x")
	for was, want := range map[string]string{
		"creature.a": "creature.c", `creature.a["k"]`: `creature.c["k"]`, "creature.ab": "creature.ab", `creature.m["x"]`: "creature.single", `creature.m["y"]`: `creature.n["y"]`,
		"creature.one": `creature.many["k"]`, `creature.one["z"]`: `creature.one["z"]`, "recipe.r.creature.q": "recipe.s.creature.q", "recipe.r.channel.x": "channel.x",
		`recipe.r["k"].creature.q`: `recipe.s["k"].creature.q`, `recipe.t["a"].creature.q`: "recipe.u.creature.q", "creature.a.wire.w": "creature.c.wire.w", "": "",
	} {
		if got := d.NowAt(was); got != want {
			t.Errorf("%s is now at %s, want %s", was, got, want)
		}
	}
}

// A protected member is not removed, however the recipe leaves it out, until a recipe without
// the protection has been applied.
func TestProtectedMembersStay(t *testing.T) {
	protect := func(d *deploy.Deployment, addresses ...string) *deploy.Deployment {
		d.Source.Path = "/recipe/garden.hcl" // otherwise the declarations are not stored
		d.Source.Files = map[string]string{"garden.hcl": ""}
		for _, address := range addresses {
			d.Declared = append(d.Declared, deploy.Declaration{Address: address, Settings: map[string]deploy.DeclaredValue{deploy.PreventDestroy: {Text: "true"}}})
		}
		return d
	}
	for how, restart := range restarts {
		t.Run(how, func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			was := func() *deploy.Deployment {
				return protect(garden("channel.in", "creature.a", "creature.b"), "creature.a", "channel.in")
			}
			s.apply(was())
			restart(s)
			for name, d := range map[string]*deploy.Deployment{
				"a creature": protect(garden("channel.in", "creature.b")), "a channel": protect(garden("channel.out", "creature.a", "creature.b")),
				"its own protection": protect(garden("channel.in", "creature.b"), "creature.a"),
			} {
				if _, err := s.Plan(t.Context(), d); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "would be removed") {
					t.Errorf("without %s Plan returns %v", name, err)
				}
				if _, err := s.Apply(t.Context(), d); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "would be removed") {
					t.Errorf("without %s Apply returns %v", name, err)
				}
			}
			nothingLeft(t, s, []*deploy.Deployment{was()})
			s.apply(was())
			restart(s)
			s.apply(moving(protect(garden("channel.in", "creature.c", "creature.b"), "creature.c", "channel.in"), "creature.a", "creature.c"))
			restart(s)
			if _, err := s.Apply(t.Context(), protect(garden("channel.in", "creature.b"))); abi.CodeOf(err) != abi.Conflict {
				t.Errorf("after the move Apply returns %v", err)
			}
			s.apply(protect(garden("channel.in", "creature.c", "creature.b")))
			restart(s)
			s.apply(protect(garden("channel.in", "creature.b")))
		})
	}
}
