package deque

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/seed47132306/terrarium/internal/seeded"
)

// TestDequeIsAList compares a deque with a list.
func TestDequeIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Deque[*int]
		var list []*int
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1, 2, 3:
				x := rapid.IntRange(0, 9).Draw(t, "value")
				d.Push(&x)
				list = append(list, &x)
			case 4, 5:
				if len(list) == 0 {
					continue
				}
				if x := d.Pop(); x != list[0] {
					t.Fatalf("Pop returned %d, want %d", *x, *list[0])
				}
				list = list[1:]
			case 6:
				y := rapid.IntRange(0, 9).Draw(t, "removed")
				var want, kept []*int
				for _, x := range list {
					if *x == y {
						want = append(want, x)
					} else {
						kept = append(kept, x)
					}
				}
				if got := d.Remove(func(x **int) bool { return **x == y }); !slices.Equal(got, want) {
					t.Fatalf("Remove returned %v, want %v", got, want)
				}
				list = kept
			}
			var all []*int
			for x := range d.All() {
				all = append(all, *x)
			}
			if d.Len() != len(list) || !slices.Equal(all, list) {
				t.Fatalf("the deque has %v, want %v", all, list)
			}
			used := 0
			for _, x := range d.ring {
				if x != nil {
					used++
				}
			}
			if used != d.Len() {
				t.Fatalf("%d places are in use for %d values", used, d.Len())
			}
		}
	})
}
