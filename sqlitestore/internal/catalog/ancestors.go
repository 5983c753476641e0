package catalog

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// Ancestors are the parents of all sessions, and the origins under which ended sessions
// wrote. For queries about every session, they are faster than queries of the catalogue.
type Ancestors struct {
	parents map[journal.SessionID][]journal.SessionID
	wrote   map[journal.SessionID]map[journal.Origin]uint64
	totals  map[journal.SessionID]int64 // see Total; nil: not known yet
}

// Ancestors reads the ancestors of all sessions.
func (k *Catalog) Ancestors(ctx context.Context) (*Ancestors, error) {
	a := &Ancestors{parents: map[journal.SessionID][]journal.SessionID{}, wrote: map[journal.SessionID]map[journal.Origin]uint64{}}
	err := k.query(ctx, "SELECT child, parent FROM parent", nil, func(v []driver.Value) error {
		var child, parent string
		err := sqlite.TakeRow(v, &child, &parent)
		a.parents[journal.SessionID(child)] = append(a.parents[journal.SessionID(child)], journal.SessionID(parent))
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, k.query(ctx, "SELECT session, uuid, highest FROM origin WHERE highest > 0", nil, func(v []driver.Value) error {
		var session string
		if err := sqlite.TakeRow(v[:1], &session); err != nil {
			return err
		}
		wrote := a.wrote[journal.SessionID(session)]
		if wrote == nil {
			wrote = map[journal.Origin]uint64{}
			a.wrote[journal.SessionID(session)] = wrote
		}
		return storefile.TakeHighest(v[1:], wrote)
	})
}

// Inherited is [Catalog.Inherited].
func (a *Ancestors) Inherited(session journal.SessionID) map[journal.Origin]uint64 {
	out, seen := map[journal.Origin]uint64{}, map[journal.SessionID]bool{session: true}
	for queue := []journal.SessionID{session}; len(queue) > 0; queue = queue[1:] {
		for origin, highest := range a.wrote[queue[0]] {
			out[origin] = max(out[origin], highest)
		}
		for _, p := range a.parents[queue[0]] {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return out
}

// Total returns how many events the origins of [Ancestors.Inherited] have together.
func (a *Ancestors) Total(session journal.SessionID) (n int64) {
	if a.totals == nil {
		a.totals = a.count()
	}
	if n, known := a.totals[session]; known {
		return n
	}
	for _, highest := range a.Inherited(session) {
		n += int64(highest)
	}
	return n
}

// count finds the totals of all sessions. Looking up the ancestors of each session
// separately would take time in proportion to the square of the number of sessions. Here,
// each step decides for 64 sessions at once whose ancestors they are. It finds nothing if
// a session is its own ancestor, or an origin has two authors: no program writes such a
// catalogue.
func (a *Ancestors) count() map[journal.SessionID]int64 {
	none := map[journal.SessionID]int64{}
	sorted, found := a.parentsFirst()
	if !found || !a.oneAuthorEach() {
		return none
	}
	at := make(map[journal.SessionID]int, len(sorted))
	parents, wrote := make([][]int, len(sorted)), make([]int64, len(sorted))
	for i, session := range sorted {
		at[session] = i
		for _, p := range a.parents[session] {
			parents[i] = append(parents[i], at[p])
		}
		for _, highest := range a.wrote[session] {
			wrote[i] += int64(highest)
		}
	}
	totals, before := make([]int64, len(sorted)), make([]uint64, len(sorted))
	for first := 0; first < len(sorted); first += 64 {
		sums := newSums(wrote[first:min(first+64, len(sorted))])
		for i := first; i < len(sorted); i++ { // an ancestor never comes after its descendants
			bits := uint64(0)
			if i < first+64 {
				bits = 1 << (i - first)
			}
			for _, p := range parents[i] {
				if p >= first {
					bits |= before[p]
				}
			}
			before[i] = bits
			totals[i] += sums.of(bits)
		}
	}
	for i, session := range sorted {
		none[session] = totals[i]
	}
	return none
}

// parentsFirst sorts all sessions so that none comes before its parents.
func (a *Ancestors) parentsFirst() (sorted []journal.SessionID, found bool) {
	const waiting, placed = 1, 2
	state := map[journal.SessionID]int{}
	var stack []journal.SessionID
	for session := range a.parents {
		stack = append(stack, session)
	}
	for session := range a.wrote {
		stack = append(stack, session)
	}
	slices.Sort(stack) // so that the result does not depend on chance
	for len(stack) > 0 {
		session := stack[len(stack)-1]
		if state[session] != 0 {
			stack = stack[:len(stack)-1]
			if state[session] == waiting {
				state[session], sorted = placed, append(sorted, session)
			}
			continue
		}
		state[session] = waiting
		for _, p := range a.parents[session] {
			if state[p] == waiting {
				return nil, false
			}
			if state[p] == 0 {
				stack = append(stack, p)
			}
		}
	}
	return sorted, true
}

// oneAuthorEach reports whether no two sessions have written under the same origin.
func (a *Ancestors) oneAuthorEach() bool {
	seen := map[journal.Origin]bool{}
	for _, wrote := range a.wrote {
		for origin := range wrote {
			if seen[origin] {
				return false
			}
			seen[origin] = true
		}
	}
	return true
}

// sums are the sums of every choice among 64 numbers, eight of them at a time.
type sums [8][256]int64

func newSums(numbers []int64) *sums {
	s := &sums{}
	for i, n := range numbers {
		part, bit := &s[i/8], 1<<(i%8)
		for chosen := range bit { // each sum with this number is the sum without it, plus the number
			part[bit|chosen] = part[chosen] + n
		}
	}
	return s
}

// of returns the sum of the chosen numbers.
func (s *sums) of(chosen uint64) (sum int64) {
	for i := range s {
		sum += s[i][byte(chosen>>(8*i))]
	}
	return sum
}
