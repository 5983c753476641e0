package topology

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPileAgainstSlice grows and shrinks a pile and a slice in step, across
// several blocks.
func TestPileAgainstSlice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	var p pile[*int]
	var want []*int
	for i := range 60 * block {
		if random.IntN(100) < 30+40*(i/(12*block)%2) && len(want) > 0 {
			p.pop()
			want = want[:len(want)-1]
		} else {
			p.push(&i)
			want = append(want, &i)
		}
		if p.size != len(want) || len(want) > 0 && *p.at(len(want) - 1) != want[len(want)-1] {
			t.Fatalf("step %d: the pile of %d items ends otherwise than the slice of %d", i, p.size, len(want))
		}
		if i%block == 0 && !slices.Equal(slices.Collect(p.all()), want) {
			t.Fatalf("step %d: the pile has other items than the slice", i)
		}
		if most := len(want)/block + 2; len(p.blocks) > most {
			t.Fatalf("step %d: %d items keep %d blocks, want at most %d", i, len(want), len(p.blocks), most)
		}
	}
}

// TestPileStays proves the purpose of a pile: a full block never moves, and
// removed items are not retained.
func TestPileStays(t *testing.T) {
	var p pile[*int]
	var places []**int
	for i := range 3*block + 1 {
		p.push(&i)
		if i%block == block-1 {
			places = append(places, p.at(i))
		}
	}
	for i, place := range places {
		if p.at((i+1)*block-1) != place {
			t.Errorf("block %d has moved", i)
		}
	}
	for p.size > block/2 {
		p.pop()
	}
	for _, items := range p.blocks {
		for i, item := range items[len(items):cap(items)] {
			if item != nil {
				t.Fatalf("a removed item is still in place %d behind the end", i)
			}
		}
	}
}
