package engine

import (
	"context"
	"slices"
	"strconv"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// rehearsal is a storage that keeps nothing. An engine over it does with saved
// graphs what it would do over the storage that they are from, and that one does
// not notice.
type rehearsal struct {
	graphs   []journal.SavedGraph
	problems []error
	archive  journal.Archive // nil: what waits cannot be read
	// homes are the sessions whose files have the messages of a channel.
	homes  map[journal.ChannelID]journal.SessionID
	buried map[journal.CreatureID]uint64 // deliveries that became dead letters
	made   int
}

func newRehearsal(graphs []journal.SavedGraph, problems []error, archive journal.Archive) *rehearsal {
	r := &rehearsal{graphs: graphs, problems: problems, archive: archive, homes: map[journal.ChannelID]journal.SessionID{}, buried: map[journal.CreatureID]uint64{}}
	for i := range graphs {
		for _, ch := range graphs[i].Channels {
			r.homes[ch.ID] = graphs[i].Session
		}
	}
	return r
}

var _ journal.Storage = (*rehearsal)(nil)

// Saved implements [journal.Storage].
func (r *rehearsal) Saved(context.Context) ([]journal.SavedGraph, []error, error) {
	out := make([]journal.SavedGraph, len(r.graphs))
	for i := range out {
		out[i] = withOwnRows(r.graphs[i])
	}
	return out, r.problems, nil
}

// withOwnRows is a saved graph with copies of those rows that whoever brings it back
// sorts.
func withOwnRows(g journal.SavedGraph) journal.SavedGraph {
	g.Creatures, g.Channels, g.Edges = slices.Clone(g.Creatures), slices.Clone(g.Channels), slices.Clone(g.Edges)
	return g
}

// Open implements [journal.Storage].
func (r *rehearsal) Open(_ context.Context, session journal.SessionID) (journal.Store, error) {
	for i := range r.graphs {
		if g := &r.graphs[i]; g.Session == session {
			return r.store(journal.SessionInfo{Session: session, Graph: g.Graph, Durability: g.Durability}), nil
		}
	}
	return nil, errtext.Gone("session", string(session))
}

// Create implements [journal.Storage].
func (r *rehearsal) Create(_ context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	var out []journal.Store
	for _, spec := range specs {
		r.made++
		s := r.store(journal.SessionInfo{Session: journal.SessionID("rehearsal-" + strconv.Itoa(r.made)), Graph: spec.Graph, Durability: spec.Durability})
		s.Append(spec.First(s.Origin()))
		out = append(out, s)
	}
	return out, nil
}

// Cut implements [journal.Storage].
func (r *rehearsal) Cut(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	var specs []journal.StoreSpec
	for _, child := range cut.Children {
		specs = append(specs, child.StoreSpec)
	}
	return r.Create(ctx, specs...)
}

func (r *rehearsal) store(info journal.SessionInfo) journal.Store {
	info.Live, info.Complete = true, true
	s := &rehearsed{r: r, info: info}
	r.made++
	copy(s.origin[:], strconv.Itoa(r.made))
	return s
}

// Retire implements [journal.Storage].
func (r *rehearsal) Retire(context.Context, journal.SessionID) error { return nil }

// Sessions implements [journal.Storage].
func (r *rehearsal) Sessions(context.Context) ([]journal.SessionInfo, error) { return nil, nil }

// History implements [journal.Storage].
func (r *rehearsal) History(context.Context, journal.SessionID, journal.HistoryQuery) ([]journal.Event, error) {
	return nil, nil
}

// Lineage implements [journal.Storage].
func (r *rehearsal) Lineage(context.Context, journal.SessionID) ([]journal.SessionInfo, error) {
	return nil, nil
}

// Verify implements [journal.Storage].
func (r *rehearsal) Verify(_ context.Context, session journal.SessionID) (journal.VerifyReport, error) {
	return journal.VerifyReport{Session: session}, nil
}

// Problems implements [journal.Storage].
func (r *rehearsal) Problems() []error { return nil }

// Close implements [journal.Storage].
func (r *rehearsal) Close() error { return nil }

// rehearsed is a store of a rehearsal.
type rehearsed struct {
	r      *rehearsal
	info   journal.SessionInfo
	origin journal.Origin
}

func (s *rehearsed) Info() journal.SessionInfo { return s.info }
func (s *rehearsed) Origin() journal.Origin    { return s.origin }

// Append notes what becomes a dead letter.
func (s *rehearsed) Append(rec *journal.Record) {
	for i := range rec.Letters {
		s.r.buried[rec.Letters[i].Creature]++
	}
}

func (s *rehearsed) Room(context.Context) error         { return nil }
func (s *rehearsed) Wait(context.Context, uint64) error { return nil }
func (s *rehearsed) Durable() uint64                    { return ^uint64(0) }
func (s *rehearsed) Notify(func())                      {}
func (s *rehearsed) Err() error                         { return nil }
func (s *rehearsed) Missing() error                     { return nil }
func (s *rehearsed) Close(context.Context) error        { return nil }

func (s *rehearsed) State(context.Context, journal.CreatureID) (map[string][]byte, error) {
	return nil, nil
}

func (s *rehearsed) History(context.Context, journal.HistoryQuery) ([]journal.Event, error) {
	return nil, nil
}

func (s *rehearsed) DeadLetters(context.Context, journal.CreatureID, journal.EventID, int) ([]journal.DeadLetterRow, error) {
	return nil, nil
}

// Messages reads where the channel was before the rehearsal began.
func (s *rehearsed) Messages(ctx context.Context, channel journal.ChannelID, after, until uint64, limit int, bytes int64) ([]journal.Event, error) {
	home, known := s.r.homes[channel]
	if !known || s.r.archive == nil {
		return nil, nil
	}
	return s.r.archive.Messages(ctx, home, channel, after, until, limit, bytes)
}
