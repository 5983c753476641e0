package operations

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// LinesSuffix ends the name of a file of JSON lines.
const LinesSuffix = ".jsonl"

// historyFormat is the version of the format of exported lines.
const historyFormat = 1

// HistoryHeader is the first line of a history that is exported as JSON lines. An
// [EventRecord] a line follows, the oldest first.
type HistoryHeader struct {
	History int           `json:"history"` // the version of the format
	Session SessionRecord `json:"session"`
	// Lineage are the ancestors of the session, itself first, generation by
	// generation.
	Lineage []SessionRecord `json:"lineage"`
}

// HistorySource is what a history is exported from, such as a
// [sqlitestore.View].
type HistorySource interface {
	Lineage(ctx context.Context, session terrarium.SessionID) ([]journal.SessionInfo, error)
	History(ctx context.Context, session terrarium.SessionID, q journal.HistoryQuery) ([]terrarium.Event, error)
}

// historyPage is how many events are read at a time.
const historyPage = 1000

// WriteHistory writes the history of a session as JSON lines: a [HistoryHeader] and
// every event that there is when it gets there.
func WriteHistory(ctx context.Context, w io.Writer, from HistorySource, session terrarium.SessionID) error {
	line, err := from.Lineage(ctx, session)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	records := sessionRecords(line)
	if err := enc.Encode(HistoryHeader{History: historyFormat, Session: records[0], Lineage: records}); err != nil {
		return err
	}
	for q := (journal.HistoryQuery{Limit: historyPage}); ; {
		events, err := from.History(ctx, session, q)
		if err != nil {
			return err
		}
		for i := range events {
			if err := enc.Encode(NewEventRecord(&events[i])); err != nil {
				return err
			}
		}
		if len(events) < historyPage {
			return out.Flush()
		}
		q.After = events[len(events)-1].ID
	}
}

// HistoryDirectory is a session directory that a history is exported from.
type HistoryDirectory interface {
	HistorySource
	// WriteFile has a file written outside of the directory that is there when it is
	// whole; see [sqlitestore.Directory.WriteFile].
	WriteFile(path string, write func(io.Writer) error) error
}

// ExportLines writes the history of a session as JSON lines to a new file; see
// [WriteHistory]. If there is such a file, it answers already_exists. The file has its
// name when it is whole.
func ExportLines(ctx context.Context, from HistoryDirectory, session terrarium.SessionID, path string) error {
	return from.WriteFile(path, func(w io.Writer) error { return WriteHistory(ctx, w, from, session) })
}

// ExportLinesOf is [ExportLines] of a graph or session, by any name that
// [terrarium.Terrarium.History] takes.
func ExportLinesOf(ctx context.Context, t *terrarium.Terrarium, graphOrSession, path string) error {
	dir := t.Directory()
	if dir == nil {
		return &abi.Error{Code: abi.Unavailable, Op: "export", Message: "there is no session directory, and so no history", Remedy: "run with one"}
	}
	return ExportLines(ctx, dir, terrarium.SessionID(graphOrSession), path)
}

// asLines reports whether a file is to get JSON lines, by its name.
func asLines(path string) bool { return strings.EqualFold(filepath.Ext(path), LinesSuffix) }
