package operations

import (
	"context"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// SearchArgs are the arguments of search.
type SearchArgs struct {
	Query     string   `json:"query" op:"required" doc:"words, \"phrases\" and beginnings* of words, with AND (which may be left out), OR, NOT and parentheses"`
	Graph     string   `json:"graph,omitempty" doc:"only the history of this graph: any id it has had, or the name of a member"`
	Session   string   `json:"session,omitempty" doc:"only the history of this session, live or ended; without graph and session, every session of the directory is searched"`
	Kinds     []string `json:"kinds,omitempty" doc:"only events of these kinds"`
	Creatures []string `json:"creatures,omitempty" doc:"only events about these creatures"`
	Channels  []string `json:"channels,omitempty" doc:"only events of these channels"`
	Limit     int      `json:"limit,omitempty" doc:"maximum number of events, up to 1,000; 20 if left out"`
}

// SearchResult is the result of search.
type SearchResult struct {
	Found   []FoundRecord `json:"found"`             // newest first
	More    bool          `json:"more,omitempty"`    // whether there are older matches
	Problem *ErrorRecord  `json:"problem,omitempty"` // why the search ran without the index, which is slower
}

// FoundRecord is the JSON form of an event that a search has found.
type FoundRecord struct {
	ID       string               `json:"id"`      // id of the event
	TS       string               `json:"ts"`      // RFC 3339, UTC
	Kind     journal.EventKind    `json:"kind"`    // kind of the event
	Session  terrarium.SessionID  `json:"session"` // session that logged the event
	Graph    terrarium.GraphID    `json:"graph,omitempty"`
	Creature terrarium.CreatureID `json:"creature,omitempty"` // for a message, the sender
	Channel  terrarium.ChannelID  `json:"channel,omitempty"`  // channel of a message
	Seq      uint64               `json:"seq,omitempty"`
	Snippet  string               `json:"snippet"` // text around the first match
	Cursor   journal.EventCursor  `json:"cursor"`  // cursor after the event
}

// NewSearchResult returns the JSON form of found events. sessions lists the sessions of
// the directory, oldest first.
func NewSearchResult(r *sqlitestore.SearchResult, sessions []journal.SessionInfo) *SearchResult {
	out := &SearchResult{Found: []FoundRecord{}, More: r.More}
	if r.Problem != nil {
		out.Problem = NewErrorRecord(r.Problem)
	}
	for i := range r.Found {
		f := &r.Found[i]
		out.Found = append(out.Found, FoundRecord{
			ID: f.ID.String(), TS: stamp(f.Time), Kind: f.Kind, Session: f.Session, Graph: f.Graph, Creature: f.Creature,
			Channel: f.Channel, Seq: f.Seq, Snippet: f.Snippet, Cursor: journal.CursorBehind(sessions, f.Session, &f.Event),
		})
	}
	return out
}

func searchEvents(ctx context.Context, s *client, a *SearchArgs) (*SearchResult, error) {
	q := sqlitestore.SearchQuery{Text: a.Query, Limit: a.Limit}
	var err error
	if a.Graph != "" || a.Session != "" {
		of, err := graphOrSession(ctx, s, "search", a.Graph, a.Session)
		if err != nil {
			return nil, err
		}
		q.Session = s.t.SessionOf(of)
	}
	if q.Kinds, err = ParseKinds("search", a.Kinds); err != nil {
		return nil, err
	}
	g, _ := s.t.FindGraph(ctx, a.Graph) // a live graph is where names are looked up
	if q.Creatures, err = allNamed(s.t.FindCreature, g, a.Creatures); err != nil {
		return nil, err
	}
	if q.Channels, err = allNamed(s.t.FindChannel, g, a.Channels); err != nil {
		return nil, err
	}
	found, err := s.t.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	list, err := s.t.Directory().Catalogue(ctx)
	if err != nil {
		return nil, err
	}
	return NewSearchResult(&found, list), nil
}

// allNamed is everNamed for a list.
func allNamed[T ~string](find func(terrarium.GraphID, string) (T, error), g terrarium.GraphID, names []string) (out []T, err error) {
	for _, name := range names {
		id, err := everNamed(find, g, name)
		if err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, nil
}
