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

// LinesSuffix is the file name suffix of JSON lines.
const LinesSuffix = ".jsonl"

// historyFormat is the format version of exported lines.
const historyFormat = 1

// HistoryHeader is the first line of a history that is exported as JSON lines. One
// [EventRecord] per line follows, oldest first.
type HistoryHeader struct {
	History int           `json:"history"` // the version of the format
	Session SessionRecord `json:"session"`
	// Lineage holds the session itself and then its ancestors, generation by
	// generation.
	Lineage []SessionRecord `json:"lineage"`
}

// HistorySource is a source of history to export, such as a [sqlitestore.View].
type HistorySource interface {
	Lineage(ctx context.Context, session terrarium.SessionID) ([]journal.SessionInfo, error)
	History(ctx context.Context, session terrarium.SessionID, q journal.HistoryQuery) ([]terrarium.Event, error)
}

// historyPage is the number of events read at a time.
const historyPage = 1000

// WriteHistory writes the history of a session as JSON lines: a [HistoryHeader], and
// then every event, including events logged while it writes.
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

// HistoryDirectory is a session directory with history to export.
type HistoryDirectory interface {
	HistorySource
	// WriteFile writes a file outside of the directory, which appears when it is
	// complete; see [sqlitestore.Directory.WriteFile].
	WriteFile(path string, write func(io.Writer) error) error
}

// ExportLines writes the history of a session as JSON lines to a new file; see
// [WriteHistory]. If the file exists, it returns already_exists. The file appears under
// its name when it is complete.
func ExportLines(ctx context.Context, from HistoryDirectory, session terrarium.SessionID, path string) error {
	return from.WriteFile(path, func(w io.Writer) error { return WriteHistory(ctx, w, from, session) })
}

// ExportLinesOf is [ExportLines] for a graph or session, by any name that
// [terrarium.Terrarium.History] takes.
func ExportLinesOf(ctx context.Context, t *terrarium.Terrarium, graphOrSession, path string) error {
	dir := t.Directory()
	if dir == nil {
		return &abi.Error{Code: abi.Unavailable, Op: "export", Message: "there is no history to export, because there is no session directory", Remedy: "run with a session directory"}
	}
	return ExportLines(ctx, dir, terrarium.SessionID(graphOrSession), path)
}

// asLines reports whether the name of a file asks for JSON lines.
func asLines(path string) bool { return strings.EqualFold(filepath.Ext(path), LinesSuffix) }
