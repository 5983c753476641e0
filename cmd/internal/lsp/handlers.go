package lsp

import (
	"encoding/json"
	"fmt"

	"github.com/seed47132306/terrarium/recipes/editor"
)

// requests are the methods that have a response.
var requests = map[string]func(*server, json.RawMessage) (any, error){
	"initialize":                  (*server).initialize,
	"shutdown":                    (*server).shutdown,
	"textDocument/hover":          (*server).hover,
	"textDocument/completion":     (*server).completion,
	"textDocument/definition":     (*server).definition,
	"textDocument/references":     (*server).references,
	"textDocument/prepareRename":  (*server).prepareRename,
	"textDocument/rename":         (*server).rename,
	"textDocument/documentSymbol": (*server).symbols,
	"textDocument/formatting":     (*server).format,
}

// notifications are the methods that have none.
var notifications = map[string]func(*server, json.RawMessage) error{
	"initialized":                     (*server).begin,
	"textDocument/didOpen":            (*server).didOpen,
	"textDocument/didChange":          (*server).didChange,
	"textDocument/didSave":            (*server).didSave,
	"textDocument/didClose":           (*server).didClose,
	"workspace/didChangeWatchedFiles": (*server).didChangeFiles,
}

// Limits of what an editor can have open.
const (
	maxDocuments = 256
	maxDocument  = 4 << 20 // bytes; recipes are smaller, and a larger text is refused anyway
	maxFolders   = 64
	maxCopied    = 1 << 30 // bytes, for the changes of one message
)

func read[T any](params json.RawMessage) (p T, err error) {
	if err := json.Unmarshal(params, &p); err != nil {
		return p, &rpcError{invalidParams, fmt.Sprintf("The parameters are not valid: %v.", err)}
	}
	return p, nil
}

func (s *server) initialize(params json.RawMessage) (any, error) {
	p, err := read[initializeParams](params)
	if err != nil {
		return nil, err
	}
	var o options
	if len(p.InitializationOptions) > 0 {
		if o, err = read[options](p.InitializationOptions); err != nil {
			return nil, err
		}
	}
	layout := editor.Layout(o.Layout)
	switch layout {
	case "":
		layout = editor.Auto
	case editor.Auto, editor.Folders, editor.Files:
	default:
		return nil, &rpcError{invalidParams, fmt.Sprintf("The layout %.40q is not one of auto, folder and file.", o.Layout)}
	}
	var roots []string
	for _, f := range p.WorkspaceFolders[:min(len(p.WorkspaceFolders), maxFolders)] {
		if path, ok := pathOf(f.URI); ok {
			roots = append(roots, path)
		}
	}
	if path, ok := pathOf(p.RootURI); ok && len(roots) == 0 {
		roots = append(roots, path)
	}
	s.ws = editor.NewWorkspace(roots, layout)
	s.moved = o.Moved == nil || *o.Moved
	s.snippets = p.Capabilities.TextDocument.Completion.CompletionItem.SnippetSupport
	s.watches = p.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration
	s.initialized = true
	return capabilities(s.o.Version), nil
}

func (s *server) shutdown(json.RawMessage) (any, error) {
	s.shut = true
	return nil, nil
}

// begin asks the client to report changes of files that are not open.
func (s *server) begin(json.RawMessage) error {
	if !s.watches {
		return nil
	}
	params, err := json.Marshal(object{"registrations": []object{{"id": "files", "method": "workspace/didChangeWatchedFiles",
		"registerOptions": object{"watchers": []object{{"globPattern": "**/*.{hcl,hcl.json,js,wasm}"}}}}}})
	if err != nil {
		return err
	}
	return s.out.send(&message{ID: json.RawMessage(`"watch"`), Method: "client/registerCapability", Params: params})
}

func (s *server) didOpen(params json.RawMessage) error {
	p, err := read[openParams](params)
	if err != nil {
		return err
	}
	path, ok := pathOf(p.TextDocument.URI)
	if !ok {
		return nil // not a file: it has no recipe around it
	}
	if len(s.docs) >= maxDocuments && s.docs[path] == nil {
		return fmt.Errorf("more than %d texts are open; this one is left out", maxDocuments)
	}
	return s.set(path, &document{uri: p.TextDocument.URI, version: p.TextDocument.Version}, []byte(p.TextDocument.Text))
}

// set gives a document a text.
func (s *server) set(path string, d *document, text []byte) error {
	if len(text) > maxDocument {
		s.forget(path)
		return fmt.Errorf("the text has more than %d bytes; it is left out", maxDocument)
	}
	d.lines = newLines(text)
	s.docs[path] = d
	s.ws.Set(path, text)
	s.changed(path)
	return nil
}

func (s *server) forget(path string) {
	delete(s.docs, path)
	s.ws.Close(path)
}

func (s *server) didChange(params json.RawMessage) error {
	p, err := read[changeParams](params)
	if err != nil {
		return err
	}
	path, _ := pathOf(p.TextDocument.URI)
	d := s.docs[path]
	if d == nil {
		return nil
	}
	l, copied := d.lines, 0
	for _, c := range p.ContentChanges {
		if c.Range == nil {
			l = newLines([]byte(c.Text))
			continue
		}
		from, to := l.offset(c.Range.Start), l.offset(c.Range.End)
		if to < from {
			from, to = to, from
		}
		if len(l.text)+len(c.Text) > 2*maxDocument {
			s.forget(path)
			return fmt.Errorf("the text has more than %d bytes; it is left out", maxDocument)
		}
		if copied += len(l.text) + len(c.Text); copied > maxCopied {
			s.forget(path)
			return fmt.Errorf("%d changes of a text of %d bytes take too long in one message; the text is left out until it is opened again", len(p.ContentChanges), len(l.text))
		}
		text := make([]byte, 0, len(l.text)+len(c.Text))
		text = append(append(append(text, l.text[:from]...), c.Text...), l.text[to:]...)
		l = newLines(text)
	}
	return s.set(path, &document{uri: d.uri, version: p.TextDocument.Version}, l.text)
}

func (s *server) didSave(params json.RawMessage) error {
	p, err := read[documentParams](params)
	if path, ok := pathOf(p.TextDocument.URI); err == nil && ok && s.docs[path] != nil {
		s.changed(path)
	}
	return err
}

func (s *server) didClose(params json.RawMessage) error {
	p, err := read[documentParams](params)
	if path, ok := pathOf(p.TextDocument.URI); err == nil && ok && s.docs[path] != nil {
		s.changed(path)
		s.forget(path)
	}
	return err
}

// didChangeFiles validates the recipes of all open texts again: a module or a script may
// have changed.
func (s *server) didChangeFiles(json.RawMessage) error {
	for path := range s.docs {
		s.changed(path)
	}
	return nil
}

// placed calls answer with the place that a request is about. Without an open document
// there is no answer.
func placed[T any](s *server, params json.RawMessage, answer func(d *document, path string, offset int, p *placeParams) (T, error)) (any, error) {
	p, err := read[placeParams](params)
	if err != nil {
		return nil, err
	}
	path, _ := pathOf(p.TextDocument.URI)
	d := s.docs[path]
	if d == nil {
		return nil, nil
	}
	return answer(d, path, d.offset(p.Position), &p)
}

func (s *server) hover(params json.RawMessage) (any, error) {
	return placed(s, params, func(d *document, path string, offset int, _ *placeParams) (*hover, error) {
		text, at, ok := s.ws.Hover(path, offset)
		if !ok {
			return nil, nil
		}
		return &hover{markdown(text), d.span(at)}, nil
	})
}

var itemKinds = map[editor.ItemKind]int{
	editor.BlockItem: itemClass, editor.AttributeItem: itemProperty, editor.FunctionItem: itemFunction,
	editor.ThingItem: itemReference, editor.WordItem: itemKeyword, editor.ValueItem: itemValue,
}

func (s *server) completion(params json.RawMessage) (any, error) {
	return placed(s, params, func(d *document, path string, offset int, _ *placeParams) (*completionList, error) {
		found := s.ws.Complete(path, offset, s.o.Builtins)
		out := &completionList{IsIncomplete: found.Incomplete, Items: make([]completionItem, 0, len(found.Items))}
		at := d.span(found.Replaces)
		for _, i := range found.Items {
			item := completionItem{Label: i.Label, Kind: itemKinds[i.Kind], Detail: i.Detail, Documentation: markdown(i.Doc),
				SortText: fmt.Sprintf("%02d%s", i.Rank, i.Label), TextEdit: &textEdit{at, i.Text}}
			if i.Snippet != "" && s.snippets {
				item.InsertTextFormat, item.TextEdit.NewText = 2, i.Snippet
			}
			out.Items = append(out.Items, item)
		}
		return out, nil
	})
}

// locations converts places; files that can no longer be read are left out.
func (s *server) locations(places []editor.Place) []location {
	out := make([]location, 0, len(places))
	texts := map[string]*lines{}
	for _, p := range places {
		if l := s.linesOf(p.Path, texts); l != nil {
			out = append(out, location{s.uri(p.Path), l.span(p.Span)})
		}
	}
	return out
}

// linesOf returns the text of a file of a recipe. known has those found before.
func (s *server) linesOf(path string, known map[string]*lines) *lines {
	if d := s.docs[path]; d != nil {
		return d.lines
	}
	if l := known[path]; l != nil {
		return l
	}
	text, _ := s.ws.Text(path) // of a script only the start is named
	known[path] = newLines(text)
	return known[path]
}

// uri returns the address of a file, as the client writes it if it is open.
func (s *server) uri(path string) string {
	if d := s.docs[path]; d != nil {
		return d.uri
	}
	return uriOf(path)
}

func (s *server) definition(params json.RawMessage) (any, error) {
	return placed(s, params, func(_ *document, path string, offset int, _ *placeParams) ([]location, error) {
		return s.locations(s.ws.Definition(path, offset)), nil
	})
}

func (s *server) references(params json.RawMessage) (any, error) {
	return placed(s, params, func(_ *document, path string, offset int, p *placeParams) ([]location, error) {
		return s.locations(s.ws.References(path, offset, p.Context.IncludeDeclaration)), nil
	})
}

func (s *server) prepareRename(params json.RawMessage) (any, error) {
	return placed(s, params, func(d *document, path string, offset int, _ *placeParams) (*renameRange, error) {
		name, at, err := s.ws.Renameable(path, offset)
		if err != nil {
			return nil, err
		}
		return &renameRange{d.span(at), name}, nil
	})
}

func (s *server) rename(params json.RawMessage) (any, error) {
	return placed(s, params, func(_ *document, path string, offset int, p *placeParams) (*workspaceEdit, error) {
		edits, err := s.ws.Rename(path, offset, p.NewName, s.moved)
		if err != nil {
			return nil, err
		}
		out := &workspaceEdit{Changes: map[string][]textEdit{}}
		texts := map[string]*lines{}
		for _, e := range edits {
			uri := s.uri(e.Path)
			out.Changes[uri] = append(out.Changes[uri], textEdit{s.linesOf(e.Path, texts).span(e.Span), e.Text})
		}
		return out, nil
	})
}

var symbolKinds = map[string]int{
	"channel": symbolEvent, "variable": symbolVariable, "locals": symbolVariable, "output": symbolVariable, "function": symbolFunction,
	"predicate": symbolFunction, "policy": symbolFunction, "creature": symbolClass, "species": symbolClass, "recipe": symbolModule,
	"terrarium": symbolNamespace,
}

func (s *server) symbols(params json.RawMessage) (any, error) {
	return placed(s, params, func(d *document, path string, _ int, _ *placeParams) ([]documentSymbol, error) {
		return symbolsOf(d, s.ws.Symbols(path)), nil
	})
}

func symbolsOf(d *document, found []editor.Symbol) []documentSymbol {
	out := make([]documentSymbol, 0, len(found))
	for _, f := range found {
		kind := symbolKinds[f.Block]
		if kind == 0 {
			kind = symbolObject
		}
		out = append(out, documentSymbol{Name: f.Name, Detail: f.Detail, Kind: kind, Range: d.span(f.Whole), SelectionRange: d.span(f.At),
			Children: symbolsOf(d, f.Within)})
	}
	return out
}

// format replaces the whole text. A text with mistakes stays as it is: its diagnostics
// say why.
func (s *server) format(params json.RawMessage) (any, error) {
	return placed(s, params, func(d *document, path string, _ int, _ *placeParams) ([]textEdit, error) {
		out := s.ws.Format(path)()
		if out == nil || string(out) == string(d.text) {
			return []textEdit{}, nil
		}
		return []textEdit{{d.span(editor.Span{Start: 0, End: len(d.text)}), string(out)}}, nil
	})
}
