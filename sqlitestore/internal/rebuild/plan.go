package rebuild

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// rebuilt is a catalogue that is to be written.
type rebuilt struct {
	*judgement
	entries    []*catalog.Entry // parents before their children, otherwise by age
	hydrations []catalog.Hydration
	leftovers  []string // in stores/
	aside      []string // in stores/: what the next opening sets aside
	unreadable []FileProblem
	missing    []journal.SessionID
	unknown    []journal.SessionID // that ended and left no record of what they wrote
}

// plan turns a judgement into the content of a catalogue.
func (j *judgement) plan(unreadable []FileProblem) *rebuilt {
	b := &rebuilt{judgement: j}
	for session := range j.accepted {
		b.describe(j.sessions[session])
	}
	b.findLost()
	b.order()
	for _, e := range b.entries {
		if !e.Live && b.wroteBy(e) == nil && e.File == "" {
			b.unknown = append(b.unknown, e.Session)
		}
		for _, sibling := range b.lostSiblings(e) {
			b.missing = append(b.missing, journal.SessionID(sibling))
		}
	}
	slices.Sort(b.missing)
	b.missing = slices.Compact(b.missing)
	for _, r := range j.others {
		b.placeOther(r)
	}
	for _, f := range unreadable {
		if !b.placeUnreadable(f) {
			b.unreadable = append(b.unreadable, f)
		}
	}
	return b
}

// describe completes an entry from the session's file.
func (b *rebuilt) describe(e *catalog.Entry) {
	e.Live, e.Complete, e.File = b.live(e.Session), true, ""
	if r := b.files[e.Session]; r != nil {
		e.File, e.Complete = r.file, !r.has(storefile.Incomplete)
		e.Needs = r.needs(e)
	}
	if e.Durability != journal.Full {
		e.Durability = journal.Normal
	}
	b.entries = append(b.entries, e)
}

// findLost finds files that must exist: an incomplete session needs them, so they have
// not been removed as unneeded. The catalogue gets their names, so that they can be
// restored.
func (b *rebuilt) findLost() {
	seen := map[journal.SessionID]bool{}
	var need func(e *catalog.Entry)
	need = func(e *catalog.Entry) {
		for _, p := range e.Needs {
			parent := b.sessions[p]
			if parent == nil || seen[p] {
				continue
			}
			seen[p] = true
			if parent.File == "" {
				parent.File, parent.Complete, parent.Needs = string(p)+files.StoreSuffix, false, stored(parent.Parents)
				b.missing = append(b.missing, p)
			} else if !parent.Complete {
				need(parent)
			}
		}
	}
	for _, e := range b.entries {
		if !e.Complete && b.endedBy[e.Session] == "" && b.files[e.Session] != nil {
			need(e)
		}
	}
}

// lostSiblings returns the sessions that were made by the same cut and have left nothing.
func (b *rebuilt) lostSiblings(e *catalog.Entry) (lost []string) {
	r := b.files[e.Session]
	if r == nil || e.Cut == "" {
		return nil
	}
	for s := range strings.FieldsSeq(r.keys[storefile.Siblings]) {
		if !b.accepted[journal.SessionID(s)] {
			lost = append(lost, s)
		}
	}
	return lost
}

// order sorts the entries: the catalogue numbers sessions in the order in which they were
// made.
func (b *rebuilt) order() {
	rank := b.ranks()
	byAge := func(x, y journal.SessionID) int {
		return cmp.Or(cmp.Compare(b.sessions[x].Created, b.sessions[y].Created), cmp.Compare(rank[x], rank[y]), cmp.Compare(x, y))
	}
	var sorted []*catalog.Entry
	placed := map[journal.SessionID]bool{}
	var place func(session journal.SessionID)
	place = func(session journal.SessionID) {
		if placed[session] || !b.accepted[session] {
			return
		}
		placed[session] = true
		for _, p := range slices.SortedFunc(slices.Values(onlyKnown(b.sessions, b.sessions[session].Parents)), byAge) {
			place(p)
		}
		sorted = append(sorted, b.sessions[session])
	}
	for _, session := range slices.SortedFunc(maps.Keys(b.accepted), byAge) {
		place(session)
	}
	b.entries = sorted
}

// ranks returns the places of sessions among the children of their cuts.
func (b *rebuilt) ranks() map[journal.SessionID]int {
	out := map[journal.SessionID]int{}
	for _, r := range b.files {
		for i, s := range strings.Fields(r.keys[storefile.Siblings]) {
			out[journal.SessionID(s)] = i
		}
	}
	return out
}

func onlyKnown(sessions map[journal.SessionID]*catalog.Entry, some []journal.SessionID) []journal.SessionID {
	return slices.DeleteFunc(slices.Clone(some), func(s journal.SessionID) bool { return sessions[s] == nil })
}

// wroteBy returns the origins under which an ended session has written, or nil.
func (b *rebuilt) wroteBy(e *catalog.Entry) map[journal.Origin]uint64 {
	out := maps.Clone(b.wrote[e.Session])
	if r := b.files[e.Session]; r != nil && len(r.own) > 0 {
		if out == nil {
			out = map[journal.Origin]uint64{}
		}
		for origin, highest := range r.own {
			out[origin] = max(out[origin], highest)
		}
	}
	return out
}

// placeOther decides what happens to a file that is not the file of its session. A file
// that was being made for a session continues to be made. A file that its session has left
// behind is no longer needed. The next opening sets any other aside.
func (b *rebuilt) placeOther(r *remains) {
	if r.session() == "" && r.has(storefile.Unused) {
		return // it was a spare file, and the next opening deletes it
	}
	winner := b.files[r.session()]
	y, begun := b.hydrationOf(r, winner)
	switch {
	case begun:
		b.hydrations = append(b.hydrations, y)
	case b.leftBehind(r, winner) || b.halfMade(r):
		b.leftovers = append(b.leftovers, r.file)
	default:
		b.aside = append(b.aside, r.file)
	}
}

// leftBehind reports whether a file has nothing that the session's current file lacks,
// except for what was pruned or undone: the session has moved to the current file, or was
// about to move from there to this one.
func (b *rebuilt) leftBehind(r, winner *remains) bool {
	switch {
	case winner == nil || !b.accepted[r.session()]:
		return false
	case r.keys[storefile.Moved] == winner.file:
		return !r.later(winner) && !r.ahead(winner)
	case sessionInName(r.file) != r.session() || winner.has(storefile.Incomplete) || !isNumbered(r.file) && !isNumbered(winner.file):
		return false
	}
	return winner.succeeds(r) || winner.covers(r) && winner.pruned() <= r.pruned()
}

// halfMade reports whether a file was being made with the part of its history that a
// session keeps, while the session's own file still has the whole history. The file is
// made again.
func (b *rebuilt) halfMade(r *remains) bool {
	e, winner := b.sessions[sessionInName(r.file)], b.files[sessionInName(r.file)]
	return r.session() == "" && r.has(storefile.Incomplete) && isNumbered(r.file) && e != nil && e.Complete && winner != nil && b.accepted[e.Session]
}

// isNumbered reports whether a file's name is that of a successor to the file that a
// session began with.
func isNumbered(file string) bool {
	return strings.Count(file, ".") == strings.Count(".2"+files.StoreSuffix, ".")
}

// hydrationOf reports whether a file was being made to be the whole file of a session,
// and its progress. winner is the file of the session that it names, if it names one.
func (b *rebuilt) hydrationOf(r, winner *remains) (catalog.Hydration, bool) {
	y := catalog.Hydration{File: r.file, Session: sessionInName(r.file), Copied: catalog.AllCopied}
	switch {
	case winner == nil && r.has(storefile.Incomplete): // about to get the history of the session that its name begins with
	case winner == nil || !winner.covers(r) && !winner.succeeds(r):
		return y, false
	case !r.has(storefile.Incomplete) && winner.has(storefile.Incomplete): // finished, and not the session's yet
		y.Session = r.session()
	default: // a copy of its base, whose durable part is not known
		y.Base, y.Copied = winner.file, 0
	}
	return y, b.awaits(y)
}

// awaits reports whether a session is to get its whole history in a file.
func (b *rebuilt) awaits(y catalog.Hydration) bool {
	e, r := b.sessions[y.Session], b.files[y.Session]
	if e == nil || r == nil || !b.accepted[y.Session] || e.Complete || e.File == y.Base || r.keys[storefile.Moved] == y.File {
		return false
	}
	return isNumbered(y.File) && !slices.ContainsFunc(b.hydrations, func(o catalog.Hydration) bool { return o.Session == y.Session })
}

// placeUnreadable plans to make a file again if only an interrupted copy is left. It
// returns false for any other.
func (b *rebuilt) placeUnreadable(f FileProblem) bool {
	file := filepath.Base(f.Path)
	y := catalog.Hydration{File: file, Session: sessionInName(file)}
	info, err := files.Stat(f.Path)
	if err != nil || info.Size() > 0 && !sqlite.Damaged(f.Err) || b.sessions[y.Session] == nil {
		return false
	}
	for _, p := range b.sessions[y.Session].Parents {
		if r := b.files[p]; r != nil {
			y.Base = r.file
		}
	}
	if y.Base == "" || !b.awaits(y) {
		return false
	}
	b.hydrations = append(b.hydrations, y)
	return true
}

// write writes the catalogue to a file that is not in use yet.
func (b *rebuilt) write(path string, h failpoint.Hooks) error {
	return catalog.Fill(path, func(t *catalog.Tx) error {
		for _, e := range b.entries {
			if err := b.writeEntry(t, e); err != nil {
				return err
			}
		}
		for _, y := range b.hydrations {
			if err := t.AddHydration(y); err != nil {
				return err
			}
		}
		for _, file := range b.leftovers {
			if err := t.AddLeftover(file); err != nil {
				return err
			}
		}
		if home := b.home(); home != "" {
			if err := t.SetHome(home); err != nil {
				return err
			}
		}
		return h.At(failpoint.Rewriting, path)
	})
}

// home returns the name of the directory in which most files record that they were made;
// see [catalog.Catalog.Home].
func (b *rebuilt) home() string {
	times := map[string]int{}
	for _, r := range b.files {
		times[r.keys[storefile.Home]]++
	}
	delete(times, "")
	most := ""
	for _, name := range slices.Sorted(maps.Keys(times)) {
		if times[name] > times[most] {
			most = name
		}
	}
	return most
}

func (b *rebuilt) writeEntry(t *catalog.Tx, e *catalog.Entry) error {
	if guessCut(e); e.Kind != "" {
		if err := t.AddCut(e.Cut, e.Kind, e.Created); err != nil {
			return err
		}
	}
	if id := b.endedBy[e.Session]; id != "" {
		child := b.sessions[b.children[id][0]] // a cut is known from its children's records
		if err := t.AddCut(id, child.Kind, child.Created); err != nil {
			return err
		}
	}
	if err := t.Add(*e); err != nil {
		return err
	}
	if e.Live {
		return nil
	}
	wrote := b.wroteBy(e)
	if wrote == nil && e.File == "" {
		wrote = map[journal.Origin]uint64{catalog.UnknownOrigin: 0}
	}
	return t.End(e.Session, b.endedBy[e.Session], wrote)
}

// pathOf returns the path of a file in stores/.
func pathOf(dir, file string) string { return filepath.Join(dir, files.Stores, file) }
