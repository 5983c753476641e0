package operations

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
)

// ApprovalsArgs are the arguments of approvals.
type ApprovalsArgs struct {
	Graphs []string `json:"graphs,omitempty" doc:"only of these graphs, each by any id it has had or the name of a member"`
}

// ApprovalsResult is the result of approvals.
type ApprovalsResult struct {
	Approvals []ApprovalRecord `json:"approvals"` // open questions, the oldest first within a graph
}

// ApprovalRecord is the JSON form of an open question of a policy about a turn.
type ApprovalRecord struct {
	ID         string                   `json:"id"`                   // id of the `approval_asked` event
	Graph      terrarium.GraphID        `json:"graph"`                // graph of the creature
	Creature   terrarium.CreatureID     `json:"creature"`             // creature whose turn waits
	Name       string                   `json:"name"`                 // name of the creature
	Event      journal.PolicyKind       `json:"event"`                // what the policy judges: send, tool, spawn, …
	Subject    string                   `json:"subject"`              // what the question is about
	Call       string                   `json:"call,omitempty"`       // the tool that the creature has called
	Channel    terrarium.ChannelID      `json:"channel,omitempty"`    // channel of a message
	Policy     string                   `json:"policy"`               // name of the policy
	Where      string                   `json:"where,omitempty"`      // its position in the recipe
	Deployment string                   `json:"deployment,omitempty"` // deployment of the policy
	Reason     string                   `json:"reason,omitempty"`     // reason that the policy gives
	Since      string                   `json:"since"`                // RFC 3339, UTC
	Deadline   string                   `json:"deadline"`             // RFC 3339, UTC: from then on the answer in otherwise applies
	Otherwise  journal.ApprovalDecision `json:"otherwise"`            // the decision if the deadline passes: approved or denied
	Message    string                   `json:"message,omitempty"`    // id of the message that the turn handles; absent for a start
	Behind     uint64                   `json:"behind"`               // deliveries of the creature that wait for the decision
	Content    Payload                  `json:"content"`              // the message that would be sent, or what would happen as JSON; at most 8 KiB
	Size       int                      `json:"size"`                 // size of the whole content, in bytes
	// SHA-256 of the whole content, if content is only a part of it
	ContentHash string `json:"content_hash,omitempty"`
	// headers of the message that would be sent, as many as fit into the 8 KiB
	Headers     map[string]string `json:"headers,omitempty"`
	MoreHeaders int               `json:"more_headers,omitempty"` // how many headers are left out
	Hash        string            `json:"hash"`                   // SHA-256 of everything that the answer covers
}

// hideContent implements withoutContent.
func (r *ApprovalsResult) hideContent() {
	for i := range r.Approvals {
		r.Approvals[i].Content, r.Approvals[i].Headers = nil, nil
	}
}

// ApprovalContentArgs are the arguments of approval_content.
type ApprovalContentArgs struct {
	Approval string   `json:"approval" op:"required" doc:"id of the approval"`
	Graphs   []string `json:"graphs,omitempty" doc:"only in these graphs, each by any id it has had or the name of a member"`
}

// ApprovalContentResult is the result of approval_content.
type ApprovalContentResult struct {
	Approval string            `json:"approval"`          // id of the approval
	Content  Payload           `json:"content"`           // the message that would be sent, or what would happen as JSON
	Headers  map[string]string `json:"headers,omitempty"` // headers of the message
}

// DecideArgs are the arguments of approve and deny.
type DecideArgs struct {
	Approval string   `json:"approval" op:"required" doc:"id of the approval"`
	Reason   string   `json:"reason,omitempty" doc:"the reason, for the history and, if denied, for the creature; at most 1 KiB"`
	By       string   `json:"by,omitempty" doc:"name of the operator, at most 1 KiB; the name of a token takes precedence"`
	Graphs   []string `json:"graphs,omitempty" doc:"only in these graphs, each by any id it has had or the name of a member"`
}

// DecideResult is the result of approve and deny.
type DecideResult struct {
	Approval string                   `json:"approval"` // id of the approval
	Decision journal.ApprovalDecision `json:"decision"` // approved or denied
	Graph    terrarium.GraphID        `json:"graph"`    // graph of the creature
	Creature terrarium.CreatureID     `json:"creature"` // creature whose turn has waited
	Name     string                   `json:"name"`     // name of the creature
}

func approvalOperations() []Operation {
	return []Operation{
		read("policies", "Lists the policies that judge what members of graphs do. A session that was resumed without its recipe has none.", policies),
		read("approvals", "Lists the open questions of policies. Turns of creatures wait for the answers.", approvals),
		read("approval_content", "Shows the complete content that a question of a policy is about. The list of approvals may show only a part of it.", approvalContent).needs(Operate),
		wait("approve", "Approves what a policy asks about. When all questions about a turn are answered, the turn runs again.", decide(true)).needs(Operate),
		wait("deny", "Denies what a policy asks about.", decide(false)).needs(Operate),
	}
}

// graphsNamed finds graphs by id or by the name of a member.
func (s *client) graphsNamed(ctx context.Context, names []string) (ids []terrarium.GraphID, err error) {
	for _, name := range names {
		id, err := s.t.FindGraph(ctx, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func approvals(ctx context.Context, s *client, a *ApprovalsArgs) (*ApprovalsResult, error) {
	graphs, err := s.graphsNamed(ctx, a.Graphs)
	if err != nil {
		return nil, err
	}
	list, err := s.t.Approvals(graphs...)
	if err != nil {
		return nil, err
	}
	out := &ApprovalsResult{Approvals: []ApprovalRecord{}}
	for i := range list {
		out.Approvals = append(out.Approvals, newApprovalRecord(&list[i]))
	}
	return out, nil
}

func approvalContent(ctx context.Context, s *client, a *ApprovalContentArgs) (*ApprovalContentResult, error) {
	id, err := approvalID("approval_content", a.Approval)
	if err != nil {
		return nil, err
	}
	graphs, err := s.graphsNamed(ctx, a.Graphs)
	if err != nil {
		return nil, err
	}
	list, err := s.t.Approvals(graphs...)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(x inspect.Approval) bool { return x.ID == id })
	if at < 0 {
		return nil, &abi.Error{Code: abi.NotFound, Op: "approval_content", Message: "no turn waits for approval " + id.String(), Remedy: "approvals lists those that wait", IDs: map[string]string{"approval": id.String()}}
	}
	of := &list[at]
	whole, all := of.Whole(nil)
	if !all {
		var payload []byte
		if payload, err = s.payloadOf(ctx, of); err != nil {
			return nil, err
		}
		whole, all = of.Whole(payload)
	}
	if !all {
		return nil, &abi.Error{
			Code: abi.Unsupported, Op: "approval_content", Message: "only the part that approvals shows was kept, because an older version asked the question, or because the graph has no session",
			Remedy: "approvals shows that part", IDs: map[string]string{"approval": id.String()},
		}
	}
	return &ApprovalContentResult{Approval: id.String(), Content: whole.Content, Headers: whole.Headers}, nil
}

// payloadOf returns the payload of the event of a question; nil if no log has it.
func (s *client) payloadOf(ctx context.Context, a *inspect.Approval) ([]byte, error) {
	if s.t.SessionOf(string(a.Graph)) == terrarium.SessionID(a.Graph) {
		return nil, nil // a graph without a session
	}
	before := journal.EventID{Origin: a.ID.Origin, Seq: a.ID.Seq - 1}
	if before.Seq == 0 {
		before = journal.EventID{}
	}
	events, err := s.t.History(ctx, string(a.Graph), journal.HistoryQuery{Kinds: []journal.EventKind{journal.EventApprovalAsked}, Creature: a.Creature, After: before, Limit: journal.MaxGraphApprovals})
	if err != nil {
		return nil, err
	}
	for i := range events {
		if events[i].ID == a.ID {
			return events[i].Payload, nil
		}
	}
	return nil, nil
}

func approvalID(op, text string) (journal.EventID, error) {
	id, err := journal.ParseEventID(text)
	if err != nil || id.IsZero() {
		return id, &abi.Error{Code: abi.InvalidArgument, Op: op, Message: "this is not the id of an approval", Remedy: "approvals lists those that wait, with their ids", IDs: map[string]string{"approval": text}}
	}
	return id, nil
}

func newApprovalRecord(a *inspect.Approval) ApprovalRecord {
	return ApprovalRecord{
		ID: a.ID.String(), Graph: a.Graph, Creature: a.Creature, Name: a.Name, Event: a.Event, Subject: a.Subject, Call: a.Call, Channel: a.Channel,
		Policy: a.Policy, Where: a.Where, Deployment: a.Deployment, Reason: a.Grounds, Since: stamp(a.Time), Deadline: stamp(a.Deadline),
		Otherwise: a.Otherwise(), Message: a.Message.String(), Behind: a.Behind, Content: Payload(a.Content), Size: a.Size, Hash: a.Hash,
		ContentHash: a.ContentHash, Headers: a.Headers, MoreHeaders: a.MoreHeaders,
	}
}

func decide(approve bool) func(context.Context, *client, *DecideArgs) (*DecideResult, func(context.Context) (*DecideResult, error), error) {
	return func(ctx context.Context, s *client, a *DecideArgs) (*DecideResult, func(context.Context) (*DecideResult, error), error) {
		id, err := approvalID("approve", a.Approval)
		if err != nil {
			return nil, nil, err
		}
		graphs, err := s.graphsNamed(ctx, a.Graphs)
		if err != nil {
			return nil, nil, err
		}
		d, err := s.t.Decide(id, engine.Decision{Approve: approve, By: cmp.Or(s.rights.Name, a.By), Reason: a.Reason}, graphs...)
		if err != nil {
			return nil, nil, err
		}
		return nil, func(ctx context.Context) (*DecideResult, error) {
			return &DecideResult{Approval: d.ID.String(), Decision: d.Decision, Graph: d.Graph, Creature: d.Creature, Name: d.Name}, d.Wait(ctx)
		}, nil
	}
}
