package operations

import (
	"context"
	"encoding/json"
	"fmt"
)

// AwarenessArgs are the arguments of awareness.
type AwarenessArgs struct {
	Creature string `json:"creature" op:"required" doc:"id, or a name that is unique"`
	Format   string `json:"format,omitempty" doc:"json (the default) or markdown"`
}

// AwarenessResult is the result of awareness.
type AwarenessResult struct {
	Revision uint64          `json:"revision"`           // revision of the document
	JSON     json.RawMessage `json:"json,omitempty"`     // the document, whose members are described in [awareness](awareness.md)
	Markdown string          `json:"markdown,omitempty"` // the document as text, with format markdown
}

func awareness(_ context.Context, s *client, a *AwarenessArgs) (*AwarenessResult, error) {
	c, err := s.t.FindCreature("", a.Creature)
	if err != nil {
		return nil, err
	}
	view, err := s.t.Awareness(c)
	if err != nil {
		return nil, err
	}
	out := &AwarenessResult{Revision: view.Revision()}
	switch a.Format {
	case "", "json":
		out.JSON = view.JSON()
	case "markdown":
		out.Markdown = string(view.Markdown())
	default:
		return nil, invalid("awareness", fmt.Sprintf("there is no format %q", a.Format), "use json or markdown")
	}
	return out, nil
}
