package outbound

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/spending"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/contain"
)

// MaxHead bounds the head of a request, in bytes.
const MaxHead = 64 << 10

// Find returns the access that grants a request, from those that a creature has. id is the id
// of a capability, or a kind. For a kind, Find returns the first capability of that kind, by
// name, that allows the request. The error is for the guest.
func Find(held map[string]*Access, id string, r capability.Request) (*Access, *abi.Error) {
	if len(r.Head) > MaxHead || bytes.IndexByte(r.Head, 0) >= 0 {
		return nil, errtext.Invalid("", "the request has more than 64 KiB besides its body, or contains a NUL", "send large data in the body")
	}
	var refusal *abi.Error
	for _, name := range slices.Sorted(maps.Keys(held)) {
		if name != id && !strings.HasPrefix(name, id+".") {
			continue
		}
		a := held[name]
		if a.Lacking {
			refusal = a.lacks()
			continue
		}
		err := a.check(r)
		if err == nil {
			return a, nil
		}
		refusal = typed(err)
	}
	if refusal == nil {
		refusal = &abi.Error{
			Code: abi.Denied, Message: "the creature has no capability " + errtext.Cut(id, 64), Remedy: "grant it in the recipe",
			IDs: map[string]string{"capability": errtext.Cut(id, 64)},
		}
	}
	return nil, refusal
}

// lacks is the error of a capability without its secret settings.
func (a *Access) lacks() *abi.Error {
	e := &abi.Error{
		Code: abi.Unavailable, Message: fmt.Sprintf("the capability %s lacks its sensitive settings (%s), which are not stored", a.ID(), strings.Join(a.Secret, ", ")),
		Remedy: "apply the recipe, which must still grant the capability", IDs: map[string]string{"capability": a.ID()},
	}
	if from := a.SecretsFrom(); len(from) > 0 {
		e.Remedy += ", with " + strings.Join(from, " and ")
	}
	return e
}

// Usable returns the access of that id among those that a creature has, for a request that is
// open; nil if there is none, or if it lacks its secret settings.
func Usable(held map[string]*Access, id string, open bool) *Access {
	if a := held[id]; a != nil && open && !a.Lacking {
		return a
	}
	return nil
}

// maxText bounds each text of a refusal, in bytes, because the log keeps it with the turn.
const maxText = 512

// typed returns an error of a capability as an [abi.Error] with shortened texts.
func typed(err error) *abi.Error {
	e, ok := err.(*abi.Error) //nolint:errorlint // a wrapping text would be lost
	if !ok {
		return &abi.Error{Code: abi.CodeOf(err), Message: errtext.Cut(err.Error(), maxText)}
	}
	return &abi.Error{Code: e.Code, Op: errtext.Cut(e.Op, 64), Message: errtext.Cut(e.Message, maxText), Remedy: errtext.Cut(e.Remedy, maxText), IDs: e.IDs}
}

// Judged returns the request with the members that policies have replaced. If the capability
// does not allow the result, the request is denied.
func (a *Access) Judged(r capability.Request, d *deploy.Decision) (capability.Request, error) {
	out, err := a.amend(r, d.Request)
	if err == nil {
		err = a.check(out)
	}
	if err != nil {
		v := deploy.Verdict{Reason: "a policy changed the request into one that the capability does not allow: " + errtext.Clip(err.Error())}
		if len(d.ChangedBy) > 0 {
			v.Policy, v.Where = d.ChangedBy[0].Policy, d.ChangedBy[0].Where
		}
		d.Denials = append(d.Denials, v)
	}
	return out, err
}

// View is the request as policies see it, in JSON. After an error, the request must not be
// executed, because policies could not judge it.
func (a *Access) View(r capability.Request) ([]byte, error) {
	view, err := a.view(r)
	if err != nil {
		return nil, err
	}
	var data []byte
	err = contain.Call(a.name, func() (err error) { // values may have methods that encode them
		if data, err = json.Marshal(view); err != nil {
			err = &abi.Error{Code: abi.Internal, Message: fmt.Sprintf("the view of %s cannot be encoded as JSON: %v", a.name, err), Remedy: "report it to the author of the kind"}
		}
		return err
	})
	return data, err
}

// Brief says what a request asks for, in a few words on one line and without its content: the
// method and the address without its query, or the model. If the creature has secrets, the path
// is left out, as it may have one of them, or one of an earlier run.
func (a *Access) Brief(o *journal.OutboundRequest, hasSecrets bool) string {
	var words []string
	view, _ := a.view(capability.Request{Head: o.Head, Body: o.Body}) // without it, there are no words
	for _, name := range []string{"method", "host", "model"} {
		if text, ok := view[name].(string); ok && text != "" {
			words = append(words, text)
		}
	}
	if path, ok := view["path"].(string); ok && len(words) > 0 && !hasSecrets {
		words[len(words)-1] += path
	}
	return errtext.Cut(strings.Join(strings.Fields(strings.Join(words, " ")), " "), maxText)
}

// ownHeaders is the room for headers that the engine adds to a result, in bytes.
const ownHeaders = 512

// Deliverable returns a result in the form that a creature gets, and its headers. The headers
// are those of the capability without reserved names, and the status. most is the creature's
// limit on messages, in bytes; a larger result becomes a failure.
func Deliverable(r capability.Result, most int64) (capability.Result, map[string]string) {
	if _, known := r.Code.Info(); r.Code != abi.OK && !known {
		r.Code = abi.Internal
	}
	if r.Code != abi.OK {
		r.Text, r.Payload = errtext.Clip(strings.ToValidUTF8(r.Text, "\ufffd")), nil
	}
	headers := map[string]string{}
	size := int64(len(r.Payload) + ownHeaders)
	for name, value := range r.Headers {
		if name == "" || strings.HasPrefix(strings.ToLower(name), journal.ReservedPrefix) || strings.ContainsRune(name+value, 0) {
			continue
		}
		headers[name] = value
		size += int64(len(name) + len(value) + 2)
	}
	if size > most {
		headers, r.Payload = map[string]string{}, nil
		r.Code, r.Text = abi.TooLarge, fmt.Sprintf("the result has about %d bytes, and the limit message of the creature is %d; raise the limit, or request less", size, most)
	}
	if r.Status != 0 {
		headers[message.HeaderStatus] = strconv.Itoa(r.Status)
	}
	return r, headers
}

// pageOf and pageBytes bound the events that are read at once.
const (
	pageOf    = 256
	pageBytes = 16 << 20
)

// Log is a [journal.Store], or anything else that has a log.
type Log interface {
	History(ctx context.Context, q journal.HistoryQuery) ([]journal.Event, error)
}

// Load returns those of the open requests that are to capabilities, by id, from the log.
func Load(ctx context.Context, log Log, open []journal.RequestRow) (map[journal.EventID]journal.OutboundRequest, error) {
	out := map[journal.EventID]journal.OutboundRequest{}
	left := map[journal.EventID]bool{}
	for i := range open {
		left[open[i].ID] = true
	}
	sorted := slices.SortedFunc(maps.Keys(left), func(a, b journal.EventID) int {
		return cmpID(a, b)
	})
	for _, id := range sorted {
		if !left[id] {
			continue // it was on an earlier page
		}
		// All events of other origins are before the mark.
		mark := journal.Mark{Event: journal.EventID{Origin: id.Origin, Seq: id.Seq - 1}, Since: math.MaxInt64}
		page, err := log.History(ctx, journal.HistoryQuery{Behind: mark, Limit: pageOf, Bytes: pageBytes})
		if err != nil {
			return nil, err
		}
		for i := range page {
			if !left[page[i].ID] {
				continue
			}
			delete(left, page[i].ID)
			if o, ok := journal.OutboundOf(&page[i]); ok {
				out[page[i].ID] = o
			}
		}
	}
	return out, nil
}

func cmpID(a, b journal.EventID) int {
	if c := bytes.Compare(a.Origin[:], b.Origin[:]); c != 0 {
		return c
	}
	switch {
	case a.Seq < b.Seq:
		return -1
	case a.Seq > b.Seq:
		return 1
	}
	return 0
}

// Allows is that of the grant, and never nil, as it would be for missing settings.
func (a *Access) Allows() []string { return append([]string{}, a.allows...) }

// Held describes capabilities that a creature holds, and what it has used of them.
func Held(held map[string]*Access, creature journal.CreatureID, l *spending.Ledger) []inspect.Capability {
	var out []inspect.Capability
	for _, id := range slices.Sorted(maps.Keys(held)) {
		one := inspect.Capability{ID: id, Used: l.Used(spending.Key{Capability: id, Creature: creature}), UsedByGraph: l.Graph(id)}
		if a := held[id]; !a.Lacking {
			one.Allows = a.Allows()
			one.Limits = &inspect.CapabilityLimits{Concurrency: a.limits.Concurrency, Rate: a.limits.Rate, Timeout: a.limits.Timeout.String(), Retries: a.limits.Retries}
			one.Budgets = a.budgets()
		}
		out = append(out, one)
	}
	return out
}

// budgets are those of the capability, if it has any.
func (a *Access) budgets() []inspect.CapabilityBudget {
	var out []inspect.CapabilityBudget
	for _, b := range a.limited {
		out = append(out, inspect.CapabilityBudget{Unit: b.Unit, Creature: b.Creature, Graph: b.Graph})
	}
	return out
}
