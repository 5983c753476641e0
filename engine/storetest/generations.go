package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/seed47132306/terrarium/engine/journal"
)

// The histories of a cut's children may be copied in the background. These checks must pass
// whether a child is complete at once, later, or never because it is cut again before that.

// seeds returns how many random families to run. TERRARIUM_SEEDS overrides the default.
func seeds(t T) uint64 {
	text := os.Getenv("TERRARIUM_SEEDS")
	if text == "" {
		return 2
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("TERRARIUM_SEEDS is %q, which is not a number", text)
	}
	return n
}

func anyFamilies(t T, open Opener) {
	for seed := range seeds(t) {
		anyFamily(labelled{t, fmt.Sprintf("seed %d", seed)}, open, seed)
	}
}

// deep cuts one side of a split again and again, shortly after each split, with restarts in
// between. In the end it merges all sides.
func deep(t T, open Opener) {
	f := newFamily(t, open, 1)
	last := f.found(creatures...)
	f.live(last, 30)
	var sides []*modelSession
	for n := len(creatures); n > 1; n-- {
		children := f.cut([]*modelSession{last}, creatures[:n-1], creatures[n-1:n])
		f.live(children[0], 3)
		f.check(children[1])
		last, sides = children[0], append(sides, children[1])
		if n%3 == 0 {
			f.restart()
			f.check(last)
		}
	}
	f.checkAll()
	all := f.cut(append(sides, last), creatures)[0]
	f.live(all, 3)
	f.check(all)
	f.restart()
	f.complete()
	f.checkAll()
}

// wide divides a store into many stores, which all continue. It merges them in pairs, and then
// all of them.
func wide(t T, open Opener) {
	f := newFamily(t, open, 2)
	root := f.found(creatures...)
	f.live(root, 30)
	var groups, pairs [][]journal.CreatureID
	for i, c := range creatures {
		groups = append(groups, []journal.CreatureID{c})
		if i%2 == 1 {
			pairs = append(pairs, creatures[i-1:i+1])
		}
	}
	for range 2 {
		children := f.cut([]*modelSession{root}, groups...)
		for _, c := range children {
			f.live(c, 2)
		}
		for _, c := range f.cut(children, pairs...) {
			f.check(c)
		}
		f.restart()
		root = f.cut(f.liveSessions(), creatures)[0]
		f.live(root, 2)
		f.check(root)
	}
	f.complete()
	f.checkAll()
}

// beforeAndAfter compares every answer from before the stores are complete with the same
// answer afterwards.
func beforeAndAfter(t T, open Opener) {
	f := newFamily(t, open, 3)
	first, second := f.found(creatures[:3]...), f.found(creatures[3:]...)
	f.live(first, 200)
	f.live(second, 200)
	merged := f.cut([]*modelSession{first, second}, creatures)
	sides := f.cut(merged, creatures[1:4], append(creatures[4:], creatures[0]))
	f.live(sides[0], 2)
	before := f.answers()
	f.complete()
	equal(t, "all answers when everything is complete", f.answers(), before)
	f.restart()
	equal(t, "all answers after a restart", f.answers(), before)
}

// anyFamily takes random actions.
func anyFamily(t T, open Opener, seed uint64) {
	f := newFamily(t, open, seed)
	f.random = rand.New(rand.NewPCG(seed, 4))
	f.live(f.found(creatures[:4]...), 10)
	f.live(f.found(creatures[4:]...), 10)
	for range 15 {
		live := f.liveSessions()
		switch n := f.random.IntN(20); {
		case n < 8:
			f.live(live[f.random.IntN(len(live))], 1+f.random.IntN(6))
		case n < 15:
			f.anyCut()
		case n < 17:
			f.restart()
		case n < 18:
			f.complete()
		case n < 19 && len(live) > 2:
			f.retire(live[f.random.IntN(len(live))])
		}
		f.check(f.all[f.random.IntN(len(f.all))])
	}
	f.checkAll()
	f.complete()
	f.restart()
	f.checkAll()
}

// anyCut divides the creatures of some live stores into new groups.
func (f *family) anyCut() {
	live := f.liveSessions()
	f.random.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
	live = live[:1+f.random.IntN(min(3, len(live)))]
	var members []journal.CreatureID
	for _, k := range live {
		members = append(members, k.creatures...)
	}
	f.random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	var groups [][]journal.CreatureID
	for len(members) > 0 {
		n := 1 + f.random.IntN(len(members))
		groups, members = append(groups, members[:n]), members[n:]
	}
	f.cut(live, groups...)
}
