package rebuild

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// judgement is what the files of a directory, taken together, show about its sessions.
type judgement struct {
	files    map[journal.SessionID]*remains       // in which the sessions continue, or ended
	others   []*remains                           // in which no session continues or ended
	sessions map[journal.SessionID]*catalog.Entry // that occur in files or lineages
	wrote    map[journal.SessionID]map[journal.Origin]uint64

	children map[string][]journal.SessionID // of each cut
	accepted map[journal.SessionID]bool     // that the lost catalogue had
	cuts     map[string]bool                // that have happened
	endedBy  map[journal.SessionID]string
}

// judge decides which sessions exist and which of them are live.
//
// A file is marked as unused until it is first written to after it was made. The file of a
// child of a cut keeps the mark at least until the cut is durable. So sessions that were
// created together exist if the file of one of them is no longer unused, or if one has
// become an ancestor. A cut has happened if that is true of one of its children. A
// creation has also happened if all of its sessions are present and filled. The same is
// true of a cut if, in addition, its parents have neither been written to since nor lost
// anything, and the cuts that it depends on have happened or meet these conditions. The
// catalogue then had the creation or cut, or was about to have it, and no caller has
// received any other answer.
func judge(found []*remains) *judgement {
	j := &judgement{
		files: map[journal.SessionID]*remains{}, sessions: map[journal.SessionID]*catalog.Entry{}, wrote: map[journal.SessionID]map[journal.Origin]uint64{},
		children: map[string][]journal.SessionID{}, accepted: map[journal.SessionID]bool{}, cuts: map[string]bool{}, endedBy: map[journal.SessionID]string{},
	}
	j.choose(found)
	for _, r := range j.files {
		j.learn(r)
	}
	for session, e := range j.sessions {
		j.children[e.Cut] = append(j.children[e.Cut], session)
	}
	for _, r := range j.files {
		if !r.has(storefile.Unused) || r.has(storefile.Retired) {
			j.accept(r.session())
		}
	}
	for session, r := range j.files {
		if e := j.sessions[session]; e != nil && e.Cut == "" && j.couldHaveBeenCreated(r) {
			j.accept(session)
		}
	}
	for _, id := range j.pending() {
		if j.couldHaveHappened(id) {
			j.acceptCut(id)
		}
	}
	return j
}

// choose decides which of several files is the session's. There are two while its whole
// file is made; others are copies.
func (j *judgement) choose(found []*remains) {
	candidates := map[journal.SessionID][]*remains{}
	for _, r := range found {
		if s := r.session(); s != "" {
			candidates[s] = append(candidates[s], r)
		} else {
			j.others = append(j.others, r)
		}
	}
	for session, list := range candidates {
		there := map[string]bool{}
		for _, r := range list {
			there[r.file] = true
		}
		best := slices.MaxFunc(list, func(a, b *remains) int { return compareRemains(a, b, there) })
		j.files[session] = best
		j.others = append(j.others, slices.DeleteFunc(list, func(r *remains) bool { return r == best })...)
	}
	slices.SortFunc(j.others, func(a, b *remains) int { return cmp.Compare(a.file, b.file) })
}

// compareRemains orders files of one session by how likely the session continues there. A
// file that records that the session has moved to another, which is present, is the least
// likely. Otherwise the session continues in the file in which it was opened last, and
// then in the one that was written to last. Of two files with the same events, the session
// was parked in the one that names the later cut: a file that takes over has the seal that
// the other had. Otherwise the complete one was about to take over, and the other may have
// records without events.
func compareRemains(a, b *remains, there map[string]bool) int {
	return cmp.Or(
		truth(!there[a.keys[storefile.Moved]], !there[b.keys[storefile.Moved]]),
		truth(a.later(b), b.later(a)),
		truth(a.ahead(b), b.ahead(a)),
		cmp.Compare(a.written(), b.written()),
		cmp.Compare(a.keys[storefile.Seal], b.keys[storefile.Seal]), // names of cuts rise with time
		truth(a.has(storefile.Incomplete), b.has(storefile.Incomplete)),
		truth(sessionInName(a.file) == a.session(), sessionInName(b.file) == b.session()),
		cmp.Compare(b.file, a.file),
	)
}

// truth orders false before true.
func truth(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// learn adds what a file records about its session and its ancestors.
func (j *judgement) learn(r *remains) {
	for session, e := range r.line {
		known := j.sessions[session]
		if known == nil || session == r.session() || known.Kind == kindUnknown && e.Kind != kindUnknown && j.files[session] == nil {
			j.sessions[session] = e
		}
	}
	for session, wrote := range r.wrote {
		if j.wrote[session] == nil {
			j.wrote[session] = map[journal.Origin]uint64{}
		}
		for origin, highest := range wrote {
			j.wrote[session][origin] = max(j.wrote[session][origin], highest)
		}
	}
}

// accept records a session that the catalogue had. Then the catalogue had its ancestors
// and the cut that made it, too.
func (j *judgement) accept(session journal.SessionID) {
	if session == storefile.VolatileParent || j.accepted[session] {
		return
	}
	j.accepted[session] = true
	e := j.sessions[session]
	if e == nil {
		e = &catalog.Entry{} // only its name is left
		e.Session = session
		j.sessions[session] = e
	}
	for _, p := range e.Parents {
		j.end(p, e.Cut)
	}
	if r := j.files[session]; r != nil {
		for ancestor := range r.line {
			j.accept(ancestor)
		}
		for ended := range r.wrote {
			j.end(ended, "")
		}
	}
	j.acceptCut(e.Cut)
}

// end records that a session has ended; cut is "" if it is not known which cut ended it.
func (j *judgement) end(session journal.SessionID, cut string) {
	if session == storefile.VolatileParent {
		return
	}
	if j.endedBy[session] == "" {
		j.endedBy[session] = cut
	}
	j.accept(session)
}

// acceptCut records a cut that has happened: all its children were accepted.
func (j *judgement) acceptCut(id string) {
	if id == "" || j.cuts[id] {
		return
	}
	j.cuts[id] = true
	for _, child := range j.children[id] {
		j.accept(child)
	}
}

// pending lists the cuts that are not known to have happened, the latest first.
func (j *judgement) pending() []string {
	var ids []string
	for id := range j.children {
		if id != "" && !j.cuts[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids) // they rise with time
	slices.Reverse(ids)
	return ids
}

// couldHaveBeenCreated reports whether the catalogue had a session without parents, or was
// about to have it.
func (j *judgement) couldHaveBeenCreated(r *remains) bool {
	siblings := strings.Fields(r.keys[storefile.Siblings])
	accepted := func(s string) bool { return j.accepted[journal.SessionID(s)] }
	return slices.ContainsFunc(siblings, accepted) || len(siblings) > 0 && j.allFilled(siblings)
}

// couldHaveHappened reports whether a cut whose children are all unused was made,
// or was about to be made when the process ended.
func (j *judgement) couldHaveHappened(id string) bool {
	for _, session := range j.children[id] {
		r := j.files[session]
		if r == nil {
			return false
		}
		siblings := strings.Fields(r.keys[storefile.Siblings])
		if len(siblings) == 0 || !j.allFilled(siblings) {
			return false
		}
		for ended, wrote := range r.endedWith() {
			if !j.stoodStill(ended, wrote) {
				return false
			}
		}
		if r.has(storefile.Sealed) && !j.allSealed(r, id) || j.restsOnALostOne(session) {
			return false
		}
	}
	return true
}

func (j *judgement) allFilled(sessions []string) bool {
	return !slices.ContainsFunc(sessions, func(s string) bool { return j.files[journal.SessionID(s)] == nil })
}

// stoodStill reports whether a session has neither written more than wrote, nor ended in
// another way.
func (j *judgement) stoodStill(session journal.SessionID, wrote map[journal.Origin]uint64) bool {
	if _, ended := j.endedBy[session]; ended {
		return false
	}
	r := j.files[session]
	return r == nil || !r.has(storefile.Retired) && !exceeds(r.own, wrote)
}

// restsOnALostOne reports whether a parent, whose file is present, has come out of a cut
// that has not happened.
func (j *judgement) restsOnALostOne(session journal.SessionID) bool {
	return slices.ContainsFunc(j.sessions[session].Parents, func(p journal.SessionID) bool {
		e := j.sessions[p]
		return e != nil && j.files[p] != nil && e.Cut != "" && !j.cuts[e.Cut] && !j.couldHaveHappened(e.Cut)
	})
}

// allSealed reports whether the parents of a file's session, as far as their files are
// present, have everything that they had when a cut was about to end them.
func (j *judgement) allSealed(child *remains, cut string) bool {
	parents := slices.Concat(j.sessions[child.session()].Parents, slices.Collect(maps.Keys(child.endedWith())))
	return !slices.ContainsFunc(parents, func(p journal.SessionID) bool {
		r := j.files[p]
		return r != nil && r.keys[storefile.Seal] != cut
	})
}

// live reports whether an accepted session has not ended.
func (j *judgement) live(session journal.SessionID) bool {
	_, ended := j.endedBy[session]
	r := j.files[session]
	return !ended && r != nil && !r.has(storefile.Retired)
}
