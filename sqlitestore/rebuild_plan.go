package sqlitestore

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// rebuilt is a catalogue that is to be written.
type rebuilt struct {
	*judgement
	entries    []*entry // parents before their children, otherwise by age
	hydrations []hydration
	leftovers  []string // in stores/
	aside      []string // in stores/: what the next opening sets aside
	unreadable []FileProblem
	missing    []journal.SessionID
	unknown    []journal.SessionID // that ended and left no trace of what they wrote
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
		if !e.Live && b.wroteBy(e) == nil && e.file == "" {
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

// describe completes an entry by what the session's file says.
func (b *rebuilt) describe(e *entry) {
	e.Live, e.Complete, e.file = b.live(e.Session), true, ""
	if r := b.files[e.Session]; r != nil {
		e.file, e.Complete = r.file, !r.has(markIncomplete)
	}
	if e.Durability != journal.Full {
		e.Durability = journal.Normal
	}
	b.entries = append(b.entries, e)
}

// findLost finds files that must be somewhere: an incomplete session needs them,
// so they have not been removed as files that nobody needs. The catalogue gets
// their names, so that they can be put back.
func (b *rebuilt) findLost() {
	seen := map[journal.SessionID]bool{}
	var need func(e *entry)
	need = func(e *entry) {
		for _, p := range e.Parents {
			parent := b.sessions[p]
			if parent == nil || seen[p] {
				continue
			}
			seen[p] = true
			if parent.file == "" {
				parent.file, parent.Complete = string(p)+storeSuffix, false
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

// lostSiblings are sessions that were made by the same cut and of which nothing
// is left.
func (b *rebuilt) lostSiblings(e *entry) (lost []string) {
	r := b.files[e.Session]
	if r == nil || e.cut == "" {
		return nil
	}
	for s := range strings.FieldsSeq(r.keys[keySiblings]) {
		if !b.accepted[journal.SessionID(s)] {
			lost = append(lost, s)
		}
	}
	return lost
}

// order sorts the entries: the catalogue numbers sessions as they were made.
func (b *rebuilt) order() {
	rank := b.ranks()
	byAge := func(x, y journal.SessionID) int {
		return cmp.Or(cmp.Compare(b.sessions[x].Created, b.sessions[y].Created), cmp.Compare(rank[x], rank[y]), cmp.Compare(x, y))
	}
	var sorted []*entry
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

// ranks are the places of sessions among the children of their cuts.
func (b *rebuilt) ranks() map[journal.SessionID]int {
	out := map[journal.SessionID]int{}
	for _, r := range b.files {
		for i, s := range strings.Fields(r.keys[keySiblings]) {
			out[journal.SessionID(s)] = i
		}
	}
	return out
}

func onlyKnown(sessions map[journal.SessionID]*entry, some []journal.SessionID) []journal.SessionID {
	return slices.DeleteFunc(slices.Clone(some), func(s journal.SessionID) bool { return sessions[s] == nil })
}

// wroteBy answers under which origins an ended session has written, or nil.
func (b *rebuilt) wroteBy(e *entry) map[journal.Origin]uint64 {
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

// placeOther decides about a file that is not the one of its session. What was
// being made for a session goes on being made. A file that its session has left
// behind is of no use any more. Whatever else it is, the next opening sets aside.
func (b *rebuilt) placeOther(r *remains) {
	if r.session() == "" && r.has(markUnused) {
		return // it was kept in store for sessions to come, and the next opening deletes it
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

// leftBehind reports whether a file has nothing that the one lacks in which its
// session goes on, but for what was given up or taken back: the session has moved
// there, or was about to move from there to this one.
func (b *rebuilt) leftBehind(r, winner *remains) bool {
	switch {
	case winner == nil || !b.accepted[r.session()]:
		return false
	case r.keys[markMoved] == winner.file:
		return !r.later(winner) && !r.ahead(winner)
	case sessionInName(r.file) != r.session() || winner.has(markIncomplete) || !isNumbered(r.file) && !isNumbered(winner.file):
		return false
	}
	return winner.succeeds(r) || winner.covers(r) && winner.pruned() <= r.pruned()
}

// halfMade reports whether a file was being made of what a session keeps of its
// history, which it has as a whole. The session begins with it anew.
func (b *rebuilt) halfMade(r *remains) bool {
	e, winner := b.sessions[sessionInName(r.file)], b.files[sessionInName(r.file)]
	return r.session() == "" && r.has(markIncomplete) && isNumbered(r.file) && e != nil && e.Complete && winner != nil && b.accepted[e.Session]
}

// isNumbered reports whether a file is called as those that take the place of the
// one that a session began with.
func isNumbered(file string) bool {
	return strings.Count(file, ".") == strings.Count(".2"+storeSuffix, ".")
}

// hydrationOf reports whether a file was being made to be the whole one of a
// session, and how far it had come. winner is the file of the session that it says
// it is of, if it says so.
func (b *rebuilt) hydrationOf(r, winner *remains) (hydration, bool) {
	y := hydration{file: r.file, session: sessionInName(r.file), copied: allCopied}
	switch {
	case winner == nil && r.has(markIncomplete): // about to get all that is in its name's family
	case winner == nil || !winner.covers(r) && !winner.succeeds(r):
		return y, false
	case !r.has(markIncomplete) && winner.has(markIncomplete): // finished, and not yet taken
		y.session = r.session()
	default: // a copy of its base, of which nobody knows how much is durable
		y.base, y.copied = winner.file, 0
	}
	return y, b.awaits(y)
}

// awaits reports whether a session is to get its whole history in a file.
func (b *rebuilt) awaits(y hydration) bool {
	e, r := b.sessions[y.session], b.files[y.session]
	if e == nil || r == nil || !b.accepted[y.session] || e.Complete || e.file == y.base || r.keys[markMoved] == y.file {
		return false
	}
	return isNumbered(y.file) && !slices.ContainsFunc(b.hydrations, func(o hydration) bool { return o.session == y.session })
}

// placeUnreadable has a file made again of which an interrupted copy is all there
// is. It answers false for any other.
func (b *rebuilt) placeUnreadable(f FileProblem) bool {
	file := filepath.Base(f.Path)
	y := hydration{file: file, session: sessionInName(file)}
	info, err := files.Stat(f.Path)
	if err != nil || info.Size() > 0 && !damaged(f.Err) || b.sessions[y.session] == nil {
		return false
	}
	for _, p := range b.sessions[y.session].Parents {
		if r := b.files[p]; r != nil {
			y.base = r.file
		}
	}
	if y.base == "" || !b.awaits(y) {
		return false
	}
	b.hydrations = append(b.hydrations, y)
	return true
}

// write makes a catalogue. Nothing else uses the file yet.
func (b *rebuilt) write(path string, h hooks) error {
	k, err := openCatalog(path, readWrite)
	if err != nil {
		return err
	}
	err = k.c.transact(func() error {
		for _, e := range b.entries {
			if err := b.writeEntry(k, e); err != nil {
				return err
			}
		}
		for _, y := range b.hydrations {
			if err := k.c.exec("INSERT INTO hydration (file, session, base, copied) VALUES (?, ?, ?, ?)", y.file, string(y.session), y.base, y.copied); err != nil {
				return err
			}
		}
		for _, file := range b.leftovers {
			if err := k.c.exec("INSERT INTO leftover (file) VALUES (?)", file); err != nil {
				return err
			}
		}
		if home := b.home(); home != "" {
			if err := k.c.exec("INSERT INTO trait (key, value) VALUES (?, ?)", keyHome, home); err != nil {
				return err
			}
		}
		return h.at(pointRewriting, path)
	})
	return joinClose(err, k)
}

// home is the name of the directory that most files say they were made in; see
// [catalog.home].
func (b *rebuilt) home() string {
	times := map[string]int{}
	for _, r := range b.files {
		times[r.keys[keyHome]]++
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

func (b *rebuilt) writeEntry(k *catalog, e *entry) error {
	if e.guessCut(); e.kind != "" {
		if err := k.addCut(e.cut, e.kind, e.Created); err != nil {
			return err
		}
	}
	if id := b.endedBy[e.Session]; id != "" {
		child := b.sessions[b.children[id][0]] // a cut is known by what its children say
		if err := k.addCut(id, child.kind, child.Created); err != nil {
			return err
		}
	}
	if err := k.add(*e); err != nil {
		return err
	}
	if e.Live {
		return nil
	}
	wrote := b.wroteBy(e)
	if wrote == nil && e.file == "" {
		wrote = map[journal.Origin]uint64{unknownOrigin: 0}
	}
	return k.freeze(e.Session, b.endedBy[e.Session], wrote)
}

// pathOf is where a file of stores/ is.
func pathOf(dir, file string) string { return filepath.Join(dir, storesName, file) }
