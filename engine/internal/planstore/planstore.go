// Package planstore implements the storage of a plan, which keeps nothing. An engine
// over it handles saved graphs as it would over their original storage, without
// touching that storage.
//
// The storage of a plan always has the graphs that it was made with: creating,
// cutting or retiring sessions does not change the result of Saved. Its stores
// accept every record and forget it, except for the number of dead letters;
// they have no state and no history. Messages are read from where they were
// before the plan.
package planstore

import (
	"context"
	"slices"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Storage is the storage of a plan. It takes no locks: nothing runs in a plan.
type Storage struct {
	graphs   []journal.SavedGraph
	problems []error
	archive  journal.Archive // nil: waiting messages cannot be read
	// homes maps a channel to the session whose file has its messages.
	homes  map[journal.ChannelID]journal.SessionID
	buried map[journal.CreatureID]uint64
	made   int
}

// New returns the storage of a plan about saved graphs. archive reads the
// messages that wait in their channels; with nil these cannot be read.
func New(graphs []journal.SavedGraph, problems []error, archive journal.Archive) *Storage {
	r := &Storage{graphs: graphs, problems: problems, archive: archive, homes: map[journal.ChannelID]journal.SessionID{}, buried: map[journal.CreatureID]uint64{}}
	for i := range graphs {
		for _, ch := range graphs[i].Channels {
			r.homes[ch.ID] = graphs[i].Session
		}
	}
	return r
}

var _ journal.Storage = (*Storage)(nil)

// Saved implements [journal.Storage].
func (r *Storage) Saved(context.Context) ([]journal.SavedGraph, []error, error) {
	out := make([]journal.SavedGraph, len(r.graphs))
	for i := range out {
		out[i] = OwnRows(r.graphs[i])
	}
	return out, r.problems, nil
}

// letters counts the dead letters of each creature in the sessions of the graphs. Without
// an archive there are none.
func (r *Storage) letters(ctx context.Context) (map[journal.CreatureID]int, error) {
	count := map[journal.CreatureID]int{}
	if r.archive == nil {
		return count, nil
	}
	const page = 1000
	for i := range r.graphs {
		for after := (journal.EventID{}); ; {
			letters, err := r.archive.DeadLetters(ctx, r.graphs[i].Session, "", after, page)
			if abi.CodeOf(err) == abi.NotFound {
				break // it has no file
			}
			if err != nil {
				return nil, err
			}
			for k := range letters {
				count[letters[k].Creature]++
				after = letters[k].ID
			}
			if len(letters) < page {
				break
			}
		}
	}
	return count, nil
}

// OwnRows returns a saved graph with copies of the rows that its reader sorts.
func OwnRows(g journal.SavedGraph) journal.SavedGraph {
	g.Creatures, g.Channels, g.Edges = slices.Clone(g.Creatures), slices.Clone(g.Channels), slices.Clone(g.Edges)
	return g
}

// Open implements [journal.Storage].
func (r *Storage) Open(_ context.Context, session journal.SessionID) (journal.Store, error) {
	for i := range r.graphs {
		if g := &r.graphs[i]; g.Session == session {
			return r.newStore(journal.SessionInfo{Session: session, Graph: g.Graph, Durability: g.Durability}), nil
		}
	}
	return nil, errtext.Gone("session", string(session))
}

// Create implements [journal.Storage].
func (r *Storage) Create(_ context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	var out []journal.Store
	for _, spec := range specs {
		r.made++
		s := r.newStore(journal.SessionInfo{Session: journal.SessionID("rehearsal-" + strconv.Itoa(r.made)), Graph: spec.Graph, Durability: spec.Durability})
		s.Append(spec.First(s.Origin()))
		out = append(out, s)
	}
	return out, nil
}

// Cut implements [journal.Storage].
func (r *Storage) Cut(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	var specs []journal.StoreSpec
	for _, child := range cut.Children {
		specs = append(specs, child.StoreSpec)
	}
	return r.Create(ctx, specs...)
}

func (r *Storage) newStore(info journal.SessionInfo) journal.Store {
	info.Live, info.Complete = true, true
	s := &store{r: r, info: info}
	r.made++
	copy(s.origin[:], strconv.Itoa(r.made))
	return s
}

// Retire implements [journal.Storage].
func (r *Storage) Retire(context.Context, journal.SessionID) error { return nil }

// Sessions implements [journal.Storage].
func (r *Storage) Sessions(context.Context) ([]journal.SessionInfo, error) { return nil, nil }

// History implements [journal.Storage].
func (r *Storage) History(context.Context, journal.SessionID, journal.HistoryQuery) ([]journal.Event, error) {
	return nil, nil
}

// Lineage implements [journal.Storage].
func (r *Storage) Lineage(context.Context, journal.SessionID) ([]journal.SessionInfo, error) {
	return nil, nil
}

// Verify implements [journal.Storage].
func (r *Storage) Verify(_ context.Context, session journal.SessionID) (journal.VerifyReport, error) {
	return journal.VerifyReport{Session: session}, nil
}

// Problems implements [journal.Storage].
func (r *Storage) Problems() []error { return nil }

// Close implements [journal.Storage].
func (r *Storage) Close() error { return nil }

// store is a store of a [Storage].
type store struct {
	r      *Storage
	info   journal.SessionInfo
	origin journal.Origin
}

func (s *store) Info() journal.SessionInfo { return s.info }
func (s *store) Origin() journal.Origin    { return s.origin }

// Append counts the dead letters of a record.
func (s *store) Append(rec *journal.Record) {
	for i := range rec.Letters {
		s.r.buried[rec.Letters[i].Creature]++
	}
}

func (s *store) Room(context.Context) error         { return nil }
func (s *store) Wait(context.Context, uint64) error { return nil }
func (s *store) Durable() uint64                    { return ^uint64(0) }
func (s *store) Notify(func())                      {}
func (s *store) Err() error                         { return nil }
func (s *store) Missing() error                     { return nil }
func (s *store) Close(context.Context) error        { return nil }

func (s *store) State(context.Context, journal.CreatureID) (map[string][]byte, error) {
	return nil, nil
}

func (s *store) History(context.Context, journal.HistoryQuery) ([]journal.Event, error) {
	return nil, nil
}

func (s *store) DeadLetters(context.Context, journal.CreatureID, journal.EventID, int) ([]journal.DeadLetterRow, error) {
	return nil, nil
}

// Messages reads from the channel's session before the plan.
func (s *store) Messages(ctx context.Context, channel journal.ChannelID, after, until uint64, limit int, bytes int64) ([]journal.Event, error) {
	home, known := s.r.homes[channel]
	if !known || s.r.archive == nil {
		return nil, nil
	}
	return s.r.archive.Messages(ctx, home, channel, after, until, limit, bytes)
}
