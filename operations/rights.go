package operations

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Scope is what a caller over the network may do. Each scope includes those before it.
type Scope uint8

// The scopes. The zero value allows nothing.
const (
	_       Scope = iota
	Read          // see graphs and what happens in them, without contents
	Operate       // see contents; send, redeliver, and change the topology
	Admin         // also use files of the server: recipes, modules, exports
)

var scopeNames = [...]string{Read: "read", Operate: "operate", Admin: "admin"}

func (s Scope) String() string {
	if int(s) < len(scopeNames) {
		return scopeNames[s]
	}
	return fmt.Sprintf("scope %d", uint8(s))
}

// ParseScope reads the name of a scope.
func ParseScope(name string) (Scope, bool) {
	for s := Read; s <= Admin; s++ {
		if scopeNames[s] == name {
			return s, true
		}
	}
	return 0, false
}

// Rights are what a caller over the network may do.
type Rights struct {
	Scope Scope
	// Graphs are the graphs that the caller may use, by the name of a member or by any id.
	// Ids stay valid through merges. Empty means all graphs.
	Graphs []string
	// Name is the name of the caller, which the log records with the caller's decisions and
	// changes of the graph; may be empty.
	Name string
	// Via is how the caller connected, which the log records with the caller's changes of
	// the graph; may be empty.
	Via string
	// Bounded callers get at most MaxListed entries of a list, and events of about
	// 64 MiB, so that a list can end before its limit.
	Bounded bool
}

const (
	// MaxListed is the largest number of entries of a list that a bounded caller may
	// request.
	MaxListed = 10_000
	// maxListedBytes is the size of the events after which an answer to such a caller
	// ends.
	maxListedBytes = 64 << 20
)

// checkLimit returns an error if a bounded caller asks for a list that is too long.
func (s *client) checkLimit(op *Operation, args any) error {
	limit := reflect.ValueOf(args).Elem().FieldByName("Limit")
	if !s.rights.Bounded || !limit.IsValid() || limit.Int() <= MaxListed {
		return nil
	}
	return &abi.Error{
		Code: abi.LimitExceeded, Op: op.Name, Message: fmt.Sprintf("a limit of %d is more than the %d allowed over the network", limit.Int(), MaxListed),
		Remedy: "request fewer, and the rest with further requests",
	}
}

// OfConnection reports whether the operation concerns a connection, so that neither [Do]
// nor the network offers it.
func (op *Operation) OfConnection() bool { return op.inOrder }

// needs returns the operation with another scope than its kind of operation has.
func (op Operation) needs(s Scope) Operation {
	op.Scope = s
	return op
}

// withoutContent is implemented by results that have a form for the scope read.
type withoutContent interface{ hideContent() }

// Do runs one operation of the table, with its arguments as a JSON object, and returns
// the struct whose JSON form is the result. It blocks until the operation is done.
//
// subscribe, unsubscribe and shutdown concern a connection, and are unsupported: see
// [Subscribe] and [Serve].
func Do(ctx context.Context, t *terrarium.Terrarium, name string, args json.RawMessage) (any, error) {
	return DoAs(ctx, t, Rights{Scope: Admin}, name, args)
}

// DoAs is [Do] for a caller with rights. If they do not suffice, the error has the code
// not_privileged. Results for the scope read have no contents.
func DoAs(ctx context.Context, t *terrarium.Terrarium, rights Rights, name string, args json.RawMessage) (any, error) {
	op, err := findOperation(name)
	if err != nil {
		return nil, err
	}
	if err := op.allowed(rights.Scope); err != nil {
		return nil, err
	}
	decoded, err := op.decodeOr(args)
	if err != nil {
		return nil, err
	}
	if op.inOrder {
		return nil, &abi.Error{Code: abi.Unsupported, Op: name, Message: "the operation concerns a connection, and there is none", Remedy: "use the command exec, or subscribe to the stream of events"}
	}
	s := &client{t: t, rights: rights}
	if err := s.confine(ctx, &op, decoded); err != nil {
		return nil, err
	}
	if err := s.checkLimit(&op, decoded); err != nil {
		return nil, err
	}
	ctx = s.attribute(ctx, &op)
	result, err := op.run(ctx, s, decoded)
	if later, waits := result.(later); err == nil && waits {
		result, err = later(ctx)
	}
	if r, ok := result.(withoutContent); ok && err == nil && rights.Scope < Operate {
		r.hideContent()
	}
	return result, err
}

// attribute returns the context for an operation of the client.
func (s *client) attribute(ctx context.Context, op *Operation) context.Context {
	return journal.Attribute(ctx, journal.Attribution{Call: op.Name, By: s.rights.Name, Via: s.rights.Via})
}

// decodeOr is decode, for which no arguments are an empty object.
func (op *Operation) decodeOr(args json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(args)) == 0 {
		args = []byte("{}")
	}
	return op.decode(args)
}

// allowed returns an error if the scope does not suffice for the operation.
func (op *Operation) allowed(scope Scope) error {
	if scope >= op.Scope {
		return nil
	}
	return notAllowed(op.Name, scope, op.Scope)
}

func notAllowed(op string, scope, needed Scope) error {
	return &abi.Error{
		Code: abi.NotPrivileged, Op: op, Message: fmt.Sprintf("the token has the scope %v, and the operation needs %v", scope, needed),
		Remedy: fmt.Sprintf("use a token with the scope %v", needed),
	}
}

// allow returns an error if the client's scope does not suffice for a part of an operation.
// A client without a scope is the process itself.
func (s *client) allow(op string, needed Scope) error {
	if s.rights.Scope == 0 || s.rights.Scope >= needed {
		return nil
	}
	return notAllowed(op, s.rights.Scope, needed)
}

// Subscribe starts a subscription with the arguments of the operation subscribe. The
// caller closes it.
func Subscribe(ctx context.Context, t *terrarium.Terrarium, rights Rights, args json.RawMessage) (*engine.Subscription, error) {
	op, err := findOperation("subscribe")
	if err != nil {
		return nil, err
	}
	if err := op.allowed(rights.Scope); err != nil {
		return nil, err
	}
	decoded, err := op.decodeOr(args)
	if err != nil {
		return nil, err
	}
	a := decoded.(*SubscribeArgs)
	s := &client{t: t, rights: rights}
	if err := s.confine(ctx, &op, a); err != nil {
		return nil, err
	}
	buffer, err := s.bufferOf(a)
	if err != nil {
		return nil, err
	}
	return s.startSubscription(ctx, a, buffer)
}
