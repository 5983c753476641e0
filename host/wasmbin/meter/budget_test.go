package meter_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// TestBudgetHandsOutItsLimit lets a guest spend random amounts: with any
// slices, it gets exactly as far as its limit allows.
func TestBudgetHandsOutItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := meter.Budget{
			Limit: rapid.Int64Range(0, 1<<62).Draw(t, "limit"),
			Slice: rapid.Int64Range(-1, 1<<62).Draw(t, "slice"),
		}
		if rapid.Bool().Draw(t, "small") {
			b.Limit %= 2000
			b.Slice %= 100
		}
		fuel, spent := b.Begin(), int64(0)
		for range 50 {
			spend := rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 1<<58)).Draw(t, "spend")
			fuel -= spend
			spent += spend
			if b.Used(fuel) != spent || b.Left(fuel) != max(0, b.Limit-spent) {
				t.Fatalf("%d used and %d left, of %d spent", b.Used(fuel), b.Left(fuel), spent)
			}
			if fuel >= 0 {
				continue
			}
			more, ok := b.More(fuel)
			if ok != (spent <= b.Limit) {
				t.Fatalf("after %d of %d the guest may go on: %t", spent, b.Limit, ok)
			}
			if !ok {
				return
			}
			if fuel = more; fuel < 0 || b.Slice > 0 && fuel > b.Slice {
				t.Fatalf("it goes on with %d, in slices of %d", fuel, b.Slice)
			}
		}
	})
}
