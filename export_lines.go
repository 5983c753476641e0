package terrarium

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
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
	Lineage(ctx context.Context, session SessionID) ([]engine.SessionInfo, error)
	History(ctx context.Context, session SessionID, q engine.HistoryQuery) ([]Event, error)
}

// historyPage is how many events are read at a time.
const historyPage = 1000

// WriteHistory writes the history of a session as JSON lines: a [HistoryHeader] and
// every event that there is when it gets there.
func WriteHistory(ctx context.Context, w io.Writer, from HistorySource, session SessionID) error {
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
	for q := (engine.HistoryQuery{Limit: historyPage}); ; {
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

// ExportLines writes the history of a session as JSON lines to a new file; see
// [WriteHistory]. If there is such a file, it answers already_exists. The file has its
// name when it is whole.
func ExportLines(ctx context.Context, from HistorySource, session SessionID, path string) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return lineFileExists(path)
	}
	partial, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return unwritableLines(path, err)
	}
	defer func() { err = errors.Join(err, os.Remove(partial.Name())) }()
	err = WriteHistory(ctx, partial, from, session)
	if err := errors.Join(err, partial.Chmod(0o644), partial.Sync(), partial.Close()); err != nil {
		return unwritableLines(path, err)
	}
	// A link, unlike a renaming, does not replace what somebody else has put there.
	if err := os.Link(partial.Name(), path); errors.Is(err, fs.ErrExist) {
		return lineFileExists(path)
	} else if err != nil {
		return unwritableLines(path, err)
	}
	return nil
}

func lineFileExists(path string) error {
	return &abi.Error{
		Code: abi.AlreadyExists, Op: "export", Message: path + " exists already",
		Remedy: "name one that does not exist; this one has been left as it is", IDs: map[string]string{"path": path},
	}
}

func unwritableLines(path string, err error) error {
	var typed *abi.Error
	if errors.As(err, &typed) {
		return err
	}
	return &abi.Error{
		Code: abi.Storage, Op: "export", Message: path + " cannot be written",
		Remedy: "name a place in a directory that exists and may be written to", IDs: map[string]string{"path": path}, Err: err,
	}
}

// ExportLines is [ExportLines] of a graph or session, with the names that History
// takes.
func (t *Terrarium) ExportLines(ctx context.Context, graphOrSession, path string) error {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return err
	}
	if t.storage == nil {
		return &abi.Error{Code: abi.Unavailable, Op: "export", Message: "there is no session directory, and so no history", Remedy: "run with one"}
	}
	return ExportLines(ctx, t.storage, t.sessionOf(of), path)
}

// asLines reports whether a file is to get JSON lines, by its name.
func asLines(path string) bool { return strings.EqualFold(filepath.Ext(path), LinesSuffix) }
