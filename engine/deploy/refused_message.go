package deploy

import (
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// RefusedMessage is the cause of the error for a message from outside that policies have
// refused.
type RefusedMessage struct {
	Effect journal.PolicyEffect // denied or dropped
	By     []Verdict            // the policies that refused it
}

// Error lists the policies that have refused the message, where and why.
func (r *RefusedMessage) Error() string {
	reasons := make([]string, len(r.By))
	for i, v := range r.By {
		reasons[i] = v.String()
	}
	return strings.Join(reasons, "; ")
}

// Refusal is the error for a message from outside, on a channel with that label, that the
// decision denies or drops.
func (d *SendDecision) Refusal(channel journal.ChannelID, label string) error {
	cause := &RefusedMessage{journal.PolicyDenied, d.Denials}
	if len(d.Denials) == 0 {
		cause = &RefusedMessage{journal.PolicyDropped, []Verdict{*d.Dropped}}
	}
	first := cause.By[0]
	ids := map[string]string{"channel": string(channel), "policy": first.Policy}
	remedy := "change the message, or the policy"
	if first.Where != "" {
		ids["where"], remedy = first.Where, remedy+" at "+first.Where
	}
	return &abi.Error{
		Code: abi.Denied, Op: "send", Message: fmt.Sprintf("the message on %s was %s", label, cause.Effect),
		Remedy: remedy, IDs: ids, Err: cause,
	}
}
