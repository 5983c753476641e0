package operations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TestExportedLines exports a session with messages of text and of bytes. The first
// line is the header, and the others are the history, each as the published schema
// says.
func TestExportedLines(t *testing.T) {
	ctx := t.Context()
	tr, err := terrarium.New(ctx, terrarium.Options{Dir: filepath.Join(t.TempDir(), "S")})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close(ctx)
	team, err := tr.Apply(ctx, "../examples/quickstart", terrarium.RecipeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		payload := fmt.Appendf(nil, "07:02 frog %d", i)
		if i == 0 {
			payload = []byte{0xff, 0}
		}
		if _, err := tr.Send(ctx, team.Channels["channel.lines"], terrarium.Outgoing{Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
	sessions, err := tr.Sessions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	session := sessions[len(sessions)-1].Session
	path := filepath.Join(t.TempDir(), "lines.jsonl")
	if err := ExportLinesOf(ctx, tr, string(session), path); err != nil {
		t.Fatal(err)
	}
	if err := ExportLinesOf(ctx, tr, string(session), path); abi.CodeOf(err) != abi.AlreadyExists {
		t.Errorf("exporting over a file: %v", err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	events, err := tr.History(ctx, string(session), journal.HistoryQuery{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	checkLines(t, bytes.Split(bytes.TrimSuffix(content, []byte("\n")), []byte("\n")), session, events)
}

func checkLines(t *testing.T, lines [][]byte, session terrarium.SessionID, events []terrarium.Event) {
	t.Helper()
	var header HistoryHeader
	strict := json.NewDecoder(bytes.NewReader(lines[0]))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&header); err != nil || header.History != 1 || header.Session.Session != session || header.Lineage[0].Session != session {
		t.Errorf("the header is %s: %v", lines[0], err)
	}
	if len(lines)-1 != len(events) || len(events) < 1000 {
		t.Fatalf("%d lines of events; the session has %d", len(lines)-1, len(events))
	}
	schema := eventSchema(t)
	for i, line := range lines[1:] {
		var value map[string]any
		if err := json.Unmarshal(line, &value); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if value["id"] != events[i].ID.String() {
			t.Fatalf("line %d is event %v; want %s", i+1, value["id"], events[i].ID)
		}
	}
}

func eventSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	b, err := os.ReadFile("../docs/reference/events.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(b, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}
