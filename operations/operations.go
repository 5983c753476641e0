package operations

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/internal/near"
)

// Operation is an entry of the table of operations. The command exec offers the table
// as JSON lines, and the reference page is generated from it.
type Operation struct {
	Name string
	Doc  string
	// Args and Result are structs whose JSON forms are the operation's arguments and
	// its result.
	Args, Result reflect.Type
	// Batchable operations change the topology and can be part of a batch.
	Batchable bool
	// Scope is what a caller over the network needs for the operation.
	Scope Scope

	waits   bool // may answer later
	inOrder bool // concerns the connection, so other requests never overtake it
	run     func(ctx context.Context, s *client, args any) (any, error)
	// prepare, if set, does the slow part before stage is called, because stage
	// blocks all other changes.
	prepare func(ctx context.Context, s *client, args any) (*engine.Prepared, error)
	stage   func(ctx context.Context, b *staging, args any, p *engine.Prepared) (any, error)
}

// Table returns the table of operations, in the order of the reference.
func Table() []Operation { return slices.Clone(table) }

var table []Operation

// Filled in init because batch looks operations up in the table.
func init() {
	table = slices.Concat(topologyOperations(), wireOperations(), messageOperations(), readingOperations(), supervisionOperations(), approvalOperations(), toolOperations(), sessionOperations(), resumeOperations(), copyOperations())
}

func findOperation(name string) (Operation, error) {
	best, distance := "", 3
	for _, op := range table {
		if op.Name == name {
			return op, nil
		}
		if d := near.Distance(op.Name, name); d < distance {
			best, distance = op.Name, d
		}
	}
	remedy := "the operations are listed in docs/reference/operations.md"
	if best != "" {
		remedy = "did you mean " + best + "?"
	}
	return Operation{}, &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("there is no operation %q", name), Remedy: remedy}
}

// read returns an operation that does not change the topology.
func read[A, R any](name, doc string, run func(ctx context.Context, s *client, a *A) (R, error)) Operation {
	return Operation{
		Name: name, Doc: doc, Args: reflect.TypeFor[A](), Result: reflect.TypeFor[R](), Scope: Read,
		run: func(ctx context.Context, s *client, args any) (any, error) { return run(ctx, s, args.(*A)) },
	}
}

// wait returns an operation that begins at once and answers later. begin returns a
// function that waits or, if there is nothing to wait for, the result.
func wait[A, R any](name, doc string, begin func(ctx context.Context, s *client, a *A) (*R, func(context.Context) (*R, error), error)) Operation {
	return Operation{
		Name: name, Doc: doc, Args: reflect.TypeFor[A](), Result: reflect.TypeFor[R](), Scope: Operate, waits: true,
		run: func(ctx context.Context, s *client, args any) (any, error) {
			result, end, err := begin(ctx, s, args.(*A))
			if err != nil || end == nil {
				return result, err
			}
			return later(func(ctx context.Context) (any, error) { return end(ctx) }), nil
		},
	}
}

// ofConnection returns an operation that is never asynchronous.
func ofConnection(op Operation) Operation {
	op.inOrder = true
	return op
}

// edit returns an operation that changes the topology, by itself or in a batch.
func edit[A, R any](name, doc string, stage func(ctx context.Context, b *staging, a *A) (*R, error)) Operation {
	return changePrepared(name, doc, nil, func(ctx context.Context, b *staging, a *A, _ *engine.Prepared) (*R, error) {
		return stage(ctx, b, a)
	})
}

// changePrepared returns an operation that changes the topology after a preparation.
func changePrepared[A, R any](name, doc string,
	prepare func(ctx context.Context, s *client, a *A) (*engine.Prepared, error),
	stage func(ctx context.Context, b *staging, a *A, p *engine.Prepared) (*R, error),
) Operation {
	op := Operation{
		Name: name, Doc: doc, Args: reflect.TypeFor[A](), Result: reflect.TypeFor[R](), Scope: Operate, Batchable: true,
		stage: func(ctx context.Context, b *staging, args any, p *engine.Prepared) (any, error) {
			return stage(ctx, b, args.(*A), p)
		},
	}
	if prepare != nil {
		op.prepare = func(ctx context.Context, s *client, args any) (*engine.Prepared, error) {
			return prepare(ctx, s, args.(*A))
		}
	}
	op.run = func(ctx context.Context, s *client, args any) (any, error) {
		results, err := carryOut(ctx, s, []step{{op: op, args: args}}, func(err error, _ int) error { return err })
		if err != nil {
			return nil, err
		}
		return results[0], nil
	}
	return op
}

// step is one of several operations that are applied together.
type step struct {
	op       Operation
	args     any
	prepared *engine.Prepared
}

// carryOut applies steps, all or nothing. at adds the number of the failed step to an
// error.
func carryOut(ctx context.Context, s *client, steps []step, at func(err error, step int) error) ([]any, error) {
	defer func() {
		for i := range steps {
			if p := steps[i].prepared; p != nil {
				p.Discard(context.WithoutCancel(ctx))
			}
		}
	}()
	for i := range steps {
		st := &steps[i]
		if st.op.prepare == nil {
			continue
		}
		var err error
		if st.prepared, err = st.op.prepare(ctx, s, st.args); err != nil {
			return nil, at(err, i)
		}
	}
	results := make([]any, 0, len(steps))
	var made *engine.Batch
	err := s.t.Batch(ctx, func(batch *engine.Batch) error {
		made = batch
		b := &staging{batch, func(name string) (terrarium.GraphID, error) { return s.t.FindGraphBy(ctx, batch.FindGraph, name) }}
		for i := range steps {
			st := &steps[i]
			if err := s.confineAt(b.whereabouts(), &st.op, st.args); err != nil { // as earlier steps may have changed what names mean
				return at(err, i)
			}
			r, err := st.op.stage(ctx, b, st.args, st.prepared)
			if err != nil {
				return at(err, i)
			}
			results = append(results, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, made.Wait(ctx)
}

// decode reads the arguments of an operation. Its errors name unknown, missing and
// malformed fields.
func (op *Operation) decode(raw []byte) (any, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		return nil, invalid(op.Name, "the arguments are not a JSON object", op.usage())
	}
	if err := tools.CheckJSON(raw); err != nil {
		return nil, err
	}
	known := op.fields()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			return nil, invalid(op.Name, fmt.Sprintf("unknown field %q", name), op.usage())
		}
	}
	args := reflect.New(op.Args)
	fields := reflect.VisibleFields(op.Args)
	for _, f := range fields {
		if raw, ok := given[jsonName(f)]; ok {
			if err := decodeField(raw, args.Elem().FieldByIndex(f.Index)); err != nil {
				return nil, op.malformed(jsonName(f), err)
			}
		}
	}
	for _, f := range fields {
		if strings.Contains(f.Tag.Get("op"), "required") && args.Elem().FieldByIndex(f.Index).IsZero() {
			return nil, invalid(op.Name, fmt.Sprintf("the field %q is missing", jsonName(f)), op.usage())
		}
	}
	return args.Interface(), nil
}

// decodeField reads a field. Negative numbers are errors in all operations.
func decodeField(raw []byte, value reflect.Value) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(value.Addr().Interface()); err != nil {
		return err
	}
	return notNegative(value)
}

// notNegative returns an error for a negative number in a field or its parts.
func notNegative(v reflect.Value) error {
	switch {
	case v.CanInt() && v.Int() < 0:
		return errors.New("it must not be negative")
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return notNegative(v.Elem())
	case v.Kind() == reflect.Struct:
		for f, part := range v.Fields() {
			if err := notNegative(part); err != nil {
				return fmt.Errorf("%s: %w", jsonName(f), err)
			}
		}
	}
	return nil
}

// malformed describes the error of a field in the terms of the operation.
func (op *Operation) malformed(name string, err error) error {
	message := fmt.Sprintf("the field %q is malformed: %v", name, err)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Field != "" {
			name += "." + wrong.Field
		}
		message = fmt.Sprintf("the field %q cannot be a JSON %s", name, wrong.Value)
	} else if inner, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		message = fmt.Sprintf("unknown field %s in the field %q", inner, name)
	}
	return invalid(op.Name, message, "see the operation in docs/reference/operations.md")
}

// usage lists the fields of the operation for a remedy.
func (op *Operation) usage() string {
	fields := op.fields()
	if len(fields) == 0 {
		return "the operation has no fields"
	}
	return "the operation's fields are " + strings.Join(fields, ", ")
}

// fields returns the names of the operation's fields.
func (op *Operation) fields() []string {
	out := []string{}
	for _, f := range reflect.VisibleFields(op.Args) {
		if name := jsonName(f); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func invalid(op, message, remedy string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, Op: op, Message: message, Remedy: remedy}
}

// later is the result of an operation that has begun in its place among the others but
// is not done: a function that waits and returns the result.
type later func(ctx context.Context) (any, error)
