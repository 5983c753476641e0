package meter_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

const bulkMemory = 8 << 16

// bulkPair is the module bulk, metered and not.
type bulkPair struct{ plain, metered *guest }

func newBulkPair(t testing.TB) bulkPair {
	wasm := readModule(t, "bulk")
	return bulkPair{newGuest(t, wasm, setting{}), newGuest(t, instrument(t, wasm, meter.Instrument), setting{slice: 300})}
}

// call calls both, which must have the same result.
func (p bulkPair) call(t interface {
	Helper()
	Fatalf(string, ...any)
}, name string, args ...uint64) []uint64 {
	t.Helper()
	want, wantErr := p.plain.call(name, args...)
	got, err := p.metered.call(name, args...)
	if fmt.Sprint(got) != fmt.Sprint(want) || trapText(err) != trapText(wantErr) {
		t.Fatalf("%s%v = %v, %s; unmetered %v, %s", name, args, got, trapText(err), want, trapText(wantErr))
	}
	return got
}

// places draws an offset or a size, some of them at the limits: of short and
// long copies, of chunks, of the memory.
func places(most uint64) *rapid.Generator[uint64] {
	limits := []uint64{0, 1, 4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537, 131072, 131073, most - 1, most, most + 1, 1<<32 - 1}
	return rapid.OneOf(rapid.Uint64Range(0, most/4), rapid.Uint64Range(0, most), rapid.SampledFrom(limits))
}

// TestMemoryBulk compares random bulk instructions on memory with native ones.
func TestMemoryBulk(t *testing.T) {
	p := newBulkPair(t)
	for i := range uint64(bulkMemory / 4096) {
		p.call(t, "fill", i*4096, i*7+1, 4000)
	}
	rapid.Check(t, func(t *rapid.T) {
		place := places(bulkMemory)
		to, from, n := place.Draw(t, "to"), place.Draw(t, "from"), place.Draw(t, "n")
		if rapid.Bool().Draw(t, "near") { // so that they overlap
			from = to + rapid.Uint64Range(0, 70_000).Draw(t, "distance") - 35_000
		}
		from &= 1<<32 - 1
		switch name := rapid.SampledFrom([]string{"copy", "fill", "init", "copy_const"}).Draw(t, "name"); name {
		case "copy_const":
			p.call(t, name, to, from)
		case "init":
			p.call(t, name, to, from%30, n%30)
		default:
			p.call(t, name, to, from, n)
		}
		if !equalMemory(p.plain, p.metered) {
			t.Fatalf("the memories differ")
		}
	})
}

func TestDroppedData(t *testing.T) {
	p := newBulkPair(t)
	p.call(t, "init", 0, 0, 26)
	p.call(t, "drop")
	p.call(t, "init", 0, 0, 0)
	p.call(t, "init", 0, 1, 0)
	p.call(t, "init", 0, 0, 1)
	p.call(t, "init", bulkMemory, 0, 0)
	p.call(t, "init", bulkMemory+1, 0, 0)
}

// TestTableBulk compares random bulk instructions on tables with native ones.
func TestTableBulk(t *testing.T) {
	const elements = 20_000
	p := newBulkPair(t)
	for i := range uint64(elements / 50) {
		p.call(t, "table_set", i*50, i+1)
	}
	rapid.Check(t, func(t *rapid.T) {
		place := places(elements)
		to, from, n := place.Draw(t, "to"), place.Draw(t, "from"), place.Draw(t, "n")
		switch name := rapid.SampledFrom([]string{"table_copy", "table_across", "table_back", "table_fill", "table_init"}).Draw(t, "name"); name {
		case "table_init":
			p.call(t, name, to%12, from%5, n%5)
			for i := range uint64(10) {
				p.call(t, "table_null", i)
			}
		default:
			p.call(t, name, to, from, n)
		}
		for i := uint64(0); i < elements; i += 997 {
			p.call(t, "table_get", i)
		}
	})
}

func TestDroppedElements(t *testing.T) {
	p := newBulkPair(t)
	p.call(t, "elem_drop")
	p.call(t, "table_init", 0, 0, 0)
	p.call(t, "table_init", 0, 0, 1)
	p.call(t, "table_init", 11, 0, 0)
}

// TestTablesGrowTogether uses up the elements allowed by the host.
func TestTablesGrowTogether(t *testing.T) {
	g := newGuest(t, instrument(t, readModule(t, "bulk"), meter.Instrument), setting{})
	for _, step := range []struct {
		by   uint64
		want int32
	}{
		{0, 10}, {uint64(tableRoom) + 1, -1}, {400, 10}, {1<<32 - 1, -1}, {uint64(tableRoom) - 400, 410}, {1, -1}, {0, 10 + int32(tableRoom)},
	} {
		if got := int32(g.must("table_grow", step.by)[0]); got != step.want {
			t.Errorf("growing by %d answers %d, want %d", step.by, got, step.want)
		}
	}
	if got := g.must("table_size")[0]; got != 10+uint64(tableRoom) {
		t.Errorf("the table has %d elements in the end", got)
	}
}

// TestMemoryGrowth proves that growth is charged by the added pages, and a
// failed attempt costs only the attempt.
func TestMemoryGrowth(t *testing.T) {
	p := bulkPair{newGuest(t, readModule(t, "work"), setting{}), newGuest(t, instrument(t, readModule(t, "work"), meter.Instrument), setting{slice: 10})}
	var used []int64
	for _, pages := range []uint64{0, 1, 10, 1000, 1<<32 - 1, 25, 1} {
		p.call(t, "grow", pages)
		used = append(used, p.metered.used())
	}
	const page = 4096
	base := used[0]
	for i, want := range []int64{0, page, 10 * page, 0, 0, 25 * page, 0} {
		if used[i]-base != want {
			t.Errorf("attempt %d used %d more than growing by nothing, want %d", i, used[i]-base, want)
		}
	}
}
