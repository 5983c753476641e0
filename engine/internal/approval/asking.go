package approval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Asked is a question of a policy about a turn that is being judged.
type Asked struct {
	deploy.Question
	deploy.Ask
	deployment string
	base       string             // the hash of the question if it is the first of several that are equal
	spawned    journal.CreatureID // whose spawn it is about; empty for other events
}

// row returns the row of a new question. The row has at most room bytes of the content
// that the question is about.
func (a *Asked) row(m *message.Message, kind abi.Kind, now int64, room int) journal.ApprovalRow {
	within := cmp.Or(a.Within, deploy.DefaultAskWithin)
	row := journal.ApprovalRow{
		Deadline: timing.After(now, int64(min(within, deploy.MaxAskWithin))), Allow: a.Allow, Message: m.LogID(), Delivery: journal.KindOfDelivery(kind),
		Channel: a.Channel, Event: a.Event, Call: a.Call, Subject: errtext.Clip(a.Subject), Deployment: a.deployment, Policy: a.Policy, Where: a.Where,
		Grounds: errtext.Clip(a.Reason), Hash: a.Hash,
	}
	row.Show(a.Content, a.Headers, room)
	return row
}

// Asking is what policies have asked about a turn. One worker owns it.
type Asking struct {
	List  []Asked
	Waits bool // the turn waits for an answer to one of them

	// Known are the questions about the turn that were asked before. Kept is how many
	// questions the creature has in all, and Open is how many questions of the graph have no
	// answer. They are read when a policy first asks.
	Known []journal.ApprovalRow
	Kept  int
	Open  int
	Read  bool
}

// ForgetSends forgets what was asked about messages and requests, which are judged again.
func (a *Asking) ForgetSends() {
	a.List = slices.DeleteFunc(a.List, func(q Asked) bool { return q.Event == journal.JudgeSend || q.Event == journal.JudgeCapability })
	a.Waits = false // a call that waits would have ended the turn
}

// equal counts the questions of the turn about an event that is equal.
func (a *Asking) equal(base string) (n int) {
	for i := range a.List {
		if a.List[i].base == base {
			n++
		}
	}
	return n
}

// AnswerEach answers the questions about an event. Each occurrence of an equal event in a
// turn has a question of its own, which about makes for the occurrence n. An event that
// is not approved is denied. Without an answer, the turn waits.
func (a *Asking) AnswerEach(said *deploy.Words, deployment string, about func(policy string, n int) deploy.Question) {
	if len(said.Denials) == 0 {
		for _, ask := range said.Asks {
			q := about(ask.Policy, 0)
			base := q.Hash
			if n := a.equal(base); n > 0 {
				q = about(ask.Policy, n)
			}
			if v := a.answer(Asked{q, ask, deployment, base, ""}); v != nil {
				said.Denials = append(said.Denials, *v)
			}
		}
	}
	said.Asks = nil
}

// AnswerOnce answers the question about an event that is judged several times in a turn,
// with the same answer. Events about different creatures of the turn, such as two spawns of
// one name, are different questions; spawned is empty for other events. It returns the
// denial, or nil if the event is approved.
func (a *Asking) AnswerOnce(ask deploy.Ask, deployment string, spawned journal.CreatureID, about func(policy string, n int) deploy.Question) *deploy.Verdict {
	q, n := about(ask.Policy, 0), 0
	base := q.Hash
	for i := range a.List {
		if a.List[i].base != base {
			continue
		}
		if a.List[i].spawned == spawned {
			break
		}
		n++
	}
	if n > 0 {
		q = about(ask.Policy, n)
	}
	return a.answer(Asked{q, ask, deployment, base, spawned})
}

func (a *Asking) answer(q Asked) *deploy.Verdict {
	denial := q.Verdict
	known := slices.IndexFunc(a.Known, func(row journal.ApprovalRow) bool { return row.Hash == q.Hash })
	again := slices.ContainsFunc(a.List, func(b Asked) bool { return b.Hash == q.Hash })
	if known < 0 && !again {
		if name, limit := a.overLimit(); limit > 0 {
			denial.Limit = true
			denial.Reason = fmt.Sprintf("the limit of approvals that a %s may wait for (%d) is reached: %s", name, limit, q.Reason)
			return &denial
		}
	}
	if !again {
		a.List = append(a.List, q)
	}
	if known >= 0 && !a.Known[known].Waits() {
		row := &a.Known[known]
		if row.Decision == journal.Approved {
			return nil
		}
		denial.Reason = denialReason(row)
		return &denial
	}
	a.Waits = true
	denial.Reason = "it waits for approval: " + q.Reason
	return &denial
}

// overLimit returns the limit that another question would exceed; 0 for none.
func (a *Asking) overLimit() (of string, limit int) {
	fresh := 0
	for i := range a.List {
		if !slices.ContainsFunc(a.Known, func(row journal.ApprovalRow) bool { return row.Hash == a.List[i].Hash }) {
			fresh++
		}
	}
	switch {
	case a.Kept+fresh >= journal.MaxCreatureApprovals:
		return "creature", journal.MaxCreatureApprovals
	case a.Open+fresh >= journal.MaxGraphApprovals:
		return "graph", journal.MaxGraphApprovals
	}
	return "", 0
}

// DeadlinePassed is the reason of a decision by the deadline.
const DeadlinePassed = "the deadline has passed"

// denialReason is the reason of a denial by an operator, or by the deadline.
func denialReason(row *journal.ApprovalRow) string {
	by := "an operator has denied it"
	switch {
	case row.By == "" && row.Because == DeadlinePassed:
		return "no operator has approved it in time"
	case row.By != "":
		by = row.By + " has denied it"
	}
	if row.Because != "" {
		by += ": " + row.Because
	}
	return by
}

// CheckDecision refuses texts that are too long to be kept.
func CheckDecision(by, reason string) error {
	for what, text := range map[string]string{"name": by, "reason": reason} {
		if len(text) > journal.MaxApprovalText {
			return errtext.Invalid("approve", fmt.Sprintf("the %s of the decision has %d bytes; at most %d are kept", what, len(text), journal.MaxApprovalText), "use a shorter one")
		}
	}
	return nil
}

// Conflict is the error for a second answer to a question.
func (q *Question) Conflict(c journal.CreatureID) *abi.Error {
	by := q.Row.Because
	if q.Row.By != "" {
		by = "by " + q.Row.By
	}
	return &abi.Error{
		Code: abi.Conflict, Op: "approve", Message: fmt.Sprintf("it was %s before (%s)", q.Row.Decision, cmp.Or(by, "by an operator")), Remedy: "approvals lists those that wait",
		IDs: map[string]string{"approval": q.Row.ID.String(), "creature": string(c)},
	}
}

// AwaitingApproval is the error of an outside call of a tool on behalf of a creature whose
// turn waits.
func AwaitingApproval(c journal.CreatureID, name string) error {
	return &abi.Error{
		Code: abi.Unavailable, Op: "tool", Message: "a turn of the creature " + name + " waits for approval",
		Remedy: "first approve or deny what it waits for; approvals lists the questions", IDs: map[string]string{"creature": string(c)},
	}
}
