package specs

import (
	"bytes"
	"encoding/json"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Row is the part of a [journal.CreatureRow] that is kept as JSON.
type Row struct {
	deploy.StoredSpec
	Own       []draft.OwnEdge `json:"own,omitempty"` // the edges that a root gets as the root
	Awareness *Seen           `json:"awareness,omitempty"`
	Paused    bool            `json:"paused,omitempty"` // see [journal.CreatureRow.State]
	// Approvals are the questions of policies about the creature's turns.
	Approvals []journal.ApprovalRow `json:"approvals,omitempty"`
}

// Seen is what a creature has seen of its surroundings.
type Seen struct {
	Revision uint64 `json:"revision"`
	Digest   []byte `json:"digest"`
	Notified uint64 `json:"told,omitempty"`
}

// Encode returns the JSON of the row.
func (r Row) Encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		return nil // cannot happen: Config was parsed before
	}
	return b
}

// Encode returns the JSON of a specification alone.
func Encode(s *deploy.CreatureSpec) []byte { return Row{StoredSpec: deploy.NewStoredSpec(s)}.Encode() }

// RunAlike reports whether two specifications, apart from their modules, need the same
// instance.
func RunAlike(a, b *deploy.CreatureSpec) bool {
	return bytes.Equal(Row{StoredSpec: running(a)}.Encode(), Row{StoredSpec: running(b)}.Encode())
}

func running(s *deploy.CreatureSpec) deploy.StoredSpec {
	out := deploy.NewStoredSpec(s)
	out.Description = ""
	return out
}

// OwnIn reads from the JSON of a row the edges that a root has as the root.
func OwnIn(row []byte) draft.OwnEdges {
	var r Row
	if json.Unmarshal(row, &r) != nil || len(r.Own) == 0 {
		return nil
	}
	own := draft.OwnEdges{}
	for _, edge := range r.Own {
		own[edge] = true
	}
	return own
}

// SeenIn reads from the JSON of a row what the creature had seen.
func SeenIn(row []byte) Seen {
	var r struct {
		Awareness Seen `json:"awareness"`
	}
	if json.Unmarshal(row, &r) != nil {
		return Seen{}
	}
	return r.Awareness
}

// ApprovalsIn reads from the JSON of a row the questions about the creature's turns.
func ApprovalsIn(row []byte) []journal.ApprovalRow {
	var r struct {
		Approvals []journal.ApprovalRow `json:"approvals"`
	}
	if json.Unmarshal(row, &r) != nil {
		return nil
	}
	return r.Approvals
}
