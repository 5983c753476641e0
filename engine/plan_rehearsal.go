package engine

import (
	"context"
	"slices"
	"strconv"
)

// Archive reads what saved sessions hold besides the rows of a [SavedGraph]. A
// [Storage] may be one.
type Archive interface {
	// Messages reads a channel of a session; see [Store].
	Messages(ctx context.Context, session SessionID, channel ChannelID, after, until uint64, limit int, bytes int64) ([]Event, error)
	// DeadLetters reads the dead letters of a session; see [Store].
	DeadLetters(ctx context.Context, session SessionID, creature CreatureID, after EventID, limit int) ([]DeadLetterRow, error)
}

// rehearsal is a storage that keeps nothing. An engine over it does with saved
// graphs what it would do over the storage that they are from, and that one does
// not notice.
type rehearsal struct {
	graphs   []SavedGraph
	problems []error
	archive  Archive // nil: what waits cannot be read
	// homes are the sessions whose files have the messages of a channel.
	homes  map[ChannelID]SessionID
	buried map[CreatureID]uint64 // deliveries that became dead letters
	made   int
}

func newRehearsal(graphs []SavedGraph, problems []error, archive Archive) *rehearsal {
	r := &rehearsal{graphs: graphs, problems: problems, archive: archive, homes: map[ChannelID]SessionID{}, buried: map[CreatureID]uint64{}}
	for i := range graphs {
		for _, ch := range graphs[i].Channels {
			r.homes[ch.ID] = graphs[i].Session
		}
	}
	return r
}

var _ Storage = (*rehearsal)(nil)

// Saved implements [Storage].
func (r *rehearsal) Saved(context.Context) ([]SavedGraph, []error, error) {
	out := make([]SavedGraph, len(r.graphs))
	for i := range out {
		out[i] = withOwnRows(r.graphs[i])
	}
	return out, r.problems, nil
}

// withOwnRows is a saved graph with copies of those rows that whoever brings it back
// sorts.
func withOwnRows(g SavedGraph) SavedGraph {
	g.Creatures, g.Channels, g.Edges = slices.Clone(g.Creatures), slices.Clone(g.Channels), slices.Clone(g.Edges)
	return g
}

// Open implements [Storage].
func (r *rehearsal) Open(_ context.Context, session SessionID) (Store, error) {
	for i := range r.graphs {
		if g := &r.graphs[i]; g.Session == session {
			return r.store(SessionInfo{Session: session, Graph: g.Graph, Durability: g.Durability}), nil
		}
	}
	return nil, gone("session", string(session))
}

// Create implements [Storage].
func (r *rehearsal) Create(_ context.Context, specs ...StoreSpec) ([]Store, error) {
	var out []Store
	for _, spec := range specs {
		r.made++
		s := r.store(SessionInfo{Session: SessionID("rehearsal-" + strconv.Itoa(r.made)), Graph: spec.Graph, Durability: spec.Durability})
		s.Append(spec.First(s.Origin()))
		out = append(out, s)
	}
	return out, nil
}

// Cut implements [Storage].
func (r *rehearsal) Cut(ctx context.Context, cut Cut) ([]Store, error) {
	var specs []StoreSpec
	for _, child := range cut.Children {
		specs = append(specs, child.StoreSpec)
	}
	return r.Create(ctx, specs...)
}

func (r *rehearsal) store(info SessionInfo) Store {
	info.Live, info.Complete = true, true
	s := &rehearsed{r: r, info: info}
	r.made++
	copy(s.origin[:], strconv.Itoa(r.made))
	return s
}

// Retire implements [Storage].
func (r *rehearsal) Retire(context.Context, SessionID) error { return nil }

// Sessions implements [Storage].
func (r *rehearsal) Sessions(context.Context) ([]SessionInfo, error) { return nil, nil }

// History implements [Storage].
func (r *rehearsal) History(context.Context, SessionID, HistoryQuery) ([]Event, error) {
	return nil, nil
}

// Lineage implements [Storage].
func (r *rehearsal) Lineage(context.Context, SessionID) ([]SessionInfo, error) { return nil, nil }

// Verify implements [Storage].
func (r *rehearsal) Verify(_ context.Context, session SessionID) (VerifyReport, error) {
	return VerifyReport{Session: session}, nil
}

// Problems implements [Storage].
func (r *rehearsal) Problems() []error { return nil }

// Close implements [Storage].
func (r *rehearsal) Close() error { return nil }

// rehearsed is a store of a rehearsal.
type rehearsed struct {
	r      *rehearsal
	info   SessionInfo
	origin Origin
}

func (s *rehearsed) Info() SessionInfo { return s.info }
func (s *rehearsed) Origin() Origin    { return s.origin }

// Append notes what becomes a dead letter.
func (s *rehearsed) Append(rec *Record) {
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

func (s *rehearsed) State(context.Context, CreatureID) (map[string][]byte, error) { return nil, nil }

func (s *rehearsed) History(context.Context, HistoryQuery) ([]Event, error) { return nil, nil }

func (s *rehearsed) DeadLetters(context.Context, CreatureID, EventID, int) ([]DeadLetterRow, error) {
	return nil, nil
}

// Messages reads where the channel was before the rehearsal began.
func (s *rehearsed) Messages(ctx context.Context, channel ChannelID, after, until uint64, limit int, bytes int64) ([]Event, error) {
	home, known := s.r.homes[channel]
	if !known || s.r.archive == nil {
		return nil, nil
	}
	return s.r.archive.Messages(ctx, home, channel, after, until, limit, bytes)
}
