package lsp

import "encoding/json"

// The types of the protocol, as far as the server uses them. The names are those of the
// specification.

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"` // in UTF-16 code units
}

type textRange struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type location struct {
	URI   string    `json:"uri"`
	Range textRange `json:"range"`
}

type initializeParams struct {
	RootURI          string `json:"rootUri"`
	WorkspaceFolders []struct {
		URI string `json:"uri"`
	} `json:"workspaceFolders"`
	Capabilities struct {
		Workspace struct {
			DidChangeWatchedFiles struct {
				DynamicRegistration bool `json:"dynamicRegistration"`
			} `json:"didChangeWatchedFiles"`
		} `json:"workspace"`
		TextDocument struct {
			Completion struct {
				CompletionItem struct {
					SnippetSupport bool `json:"snippetSupport"`
				} `json:"completionItem"`
			} `json:"completion"`
		} `json:"textDocument"`
	} `json:"capabilities"`
	InitializationOptions json.RawMessage `json:"initializationOptions"`
}

// options are the settings that an editor can pass with initialize.
type options struct {
	// Layout is how the files of a folder belong together: auto, folder or file.
	Layout string `json:"layout"`
	// Moved says whether renaming a creature or a channel adds a block moved; the default
	// is true.
	Moved *bool `json:"moved"`
}

type documentID struct {
	URI     string `json:"uri"`
	Version int    `json:"version"`
}

type openParams struct {
	TextDocument struct {
		documentID
		Text string `json:"text"`
	} `json:"textDocument"`
}

type changeParams struct {
	TextDocument   documentID `json:"textDocument"`
	ContentChanges []struct {
		Range *textRange `json:"range"`
		Text  string     `json:"text"`
	} `json:"contentChanges"`
}

type documentParams struct {
	TextDocument documentID `json:"textDocument"`
}

type placeParams struct {
	TextDocument documentID `json:"textDocument"`
	Position     position   `json:"position"`
	NewName      string     `json:"newName"` // of rename
	Context      struct {
		IncludeDeclaration bool `json:"includeDeclaration"`
	} `json:"context"` // of references
}

type cancelParams struct {
	ID json.RawMessage `json:"id"`
}

type markup struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

func markdown(text string) *markup {
	if text == "" {
		return nil
	}
	return &markup{"markdown", text}
}

type hover struct {
	Contents *markup   `json:"contents"`
	Range    textRange `json:"range"`
}

type completionList struct {
	IsIncomplete bool             `json:"isIncomplete"`
	Items        []completionItem `json:"items"`
}

type completionItem struct {
	Label            string    `json:"label"`
	Kind             int       `json:"kind"`
	Detail           string    `json:"detail,omitempty"`
	Documentation    *markup   `json:"documentation,omitempty"`
	SortText         string    `json:"sortText"`
	FilterText       string    `json:"filterText,omitempty"`
	InsertTextFormat int       `json:"insertTextFormat,omitempty"`
	TextEdit         *textEdit `json:"textEdit"`
}

type textEdit struct {
	Range   textRange `json:"range"`
	NewText string    `json:"newText"`
}

type renameRange struct {
	Range       textRange `json:"range"`
	Placeholder string    `json:"placeholder"`
}

type workspaceEdit struct {
	Changes map[string][]textEdit `json:"changes"`
}

type documentSymbol struct {
	Name           string           `json:"name"`
	Detail         string           `json:"detail,omitempty"`
	Kind           int              `json:"kind"`
	Range          textRange        `json:"range"`
	SelectionRange textRange        `json:"selectionRange"`
	Children       []documentSymbol `json:"children,omitempty"`
}

type diagnostic struct {
	Range    textRange `json:"range"`
	Severity int       `json:"severity"`
	Source   string    `json:"source"`
	Message  string    `json:"message"`
}

type publishParams struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version,omitempty"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

// object is a JSON object that is written once.
type object map[string]any

// capabilities are what the server can do.
func capabilities(version string) object {
	return object{
		"serverInfo": object{"name": "terrarium", "version": version},
		"capabilities": object{
			"positionEncoding":           "utf-16",
			"textDocumentSync":           object{"openClose": true, "change": 2, "save": true}, // 2: incremental
			"hoverProvider":              true,
			"completionProvider":         object{"triggerCharacters": []string{".", `"`}},
			"definitionProvider":         true,
			"referencesProvider":         true,
			"renameProvider":             object{"prepareProvider": true},
			"documentSymbolProvider":     true,
			"documentFormattingProvider": true,
			"workspace":                  object{"workspaceFolders": object{"supported": true}},
		},
	}
}

// The kinds of items and symbols, and the severities, as numbers of the protocol.
const (
	itemFunction, itemClass, itemProperty, itemValue, itemKeyword, itemReference = 3, 7, 10, 12, 14, 18

	symbolModule, symbolNamespace, symbolClass, symbolFunction, symbolVariable, symbolObject, symbolEvent = 2, 3, 5, 12, 13, 19, 24

	severityError, severityWarning, severityInformation = 1, 2, 3
)
