// Command opsdoc generates the parts of docs/reference that tables in the code define:
// the operations page, the group tools and their schemas, the schema of the awareness
// document, and the tables of limits, error codes, recipe blocks and policies. It runs
// the examples to get their answers.
//
// go generate runs it twice. In the second run the engine uses the schemas that the
// first run has written, and rejects arguments that they do not allow.
//
//go:generate go run .
//go:generate go run .
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// root is the path of the repository from this directory, where go generate and go test
// run.
const root = "../../.."

func main() {
	pages, err := generate(context.Background(), root)
	for name, content := range pages {
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), content, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "opsdoc:", err)
		os.Exit(1)
	}
}

// table is a generated part of a page, between two markers.
type table struct {
	page, name string
	write      func(*bytes.Buffer)
}

var tables = []table{
	{"docs/reference/limits.md", "limits", limitTable},
	{"docs/reference/errors.md", "codes", codeTable},
	{recipesPage, "policy events", occasionTable},
	{recipesPage, "answers", answerTable},
	{recipesPage, "policy fields", policyFieldTable},
	{recipesPage, "message fields", messageFieldTable},
	{recipesPage, "ctx", contextTable},
}

// generate returns the generated pages, by path.
func generate(ctx context.Context, root string) (map[string][]byte, error) {
	examples, err := runExamples(ctx, root)
	if err != nil {
		return nil, err
	}
	comments, err := readComments(root, ".", "operations", "engine", "engine/journal", "engine/deploy", "engine/diff", "engine/inspect", "engine/outlook", "engine/tools", "engine/topology", "abi", "serve")
	if err != nil {
		return nil, err
	}
	awareness, err := awarenessSchema(comments)
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{
		"docs/reference/operations.md":         operationsPage(comments, examples),
		"docs/reference/awareness.schema.json": awareness,
	}
	if pages[grammarFile], err = grammarText(); err != nil {
		return nil, err
	}
	events, err := schemaOfEvents(comments)
	if err != nil {
		return nil, err
	}
	if pages[eventsSchema], err = schemaText(events); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, eventsPage))
	if err == nil {
		pages[eventsPage], err = payloadTables(text, comments)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", eventsPage, err)
	}
	for _, t := range append(tables, languageTables()...) {
		text := pages[t.page]
		if text == nil {
			if text, err = os.ReadFile(filepath.Join(root, t.page)); err != nil {
				return nil, err
			}
		}
		if pages[t.page], err = fill(text, t.name, t.write); err != nil {
			return nil, fmt.Errorf("%s: %w", t.page, err)
		}
	}
	if pages[openapiFile], err = openapi(comments); err != nil {
		return nil, err
	}
	return pages, addTools(ctx, pages, root, comments)
}

// fill writes a table between its markers.
func fill(text []byte, name string, write func(*bytes.Buffer)) ([]byte, error) {
	start, end := []byte("<!-- generated: "+name+" -->\n"), []byte("<!-- end: "+name+" -->\n")
	from, to := bytes.Index(text, start), bytes.Index(text, end)
	if from < 0 || to < from {
		return nil, fmt.Errorf("the markers of the table %s are missing; write %s%s", name, start, end)
	}
	var b bytes.Buffer
	b.Write(text[:from+len(start)])
	b.WriteByte('\n')
	write(&b)
	b.WriteByte('\n')
	b.Write(text[to:])
	return b.Bytes(), nil
}
