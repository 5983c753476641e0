package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
)

const openapiFile = "docs/reference/openapi.json"

// object is a JSON object.
type object = map[string]any

// openapi returns the description of the HTTP interface of serve, as OpenAPI 3.1.
func openapi(c comments) ([]byte, error) {
	i := inference{comments: c}
	paths := object{}
	for _, op := range operations.Table() {
		if op.OfConnection() {
			continue
		}
		path, err := i.path(op)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.Name, err)
		}
		paths["/api/v1/"+op.Name] = object{"post": path}
	}
	events, err := i.eventsPath()
	if err != nil {
		return nil, err
	}
	paths["/api/v1/events"] = object{"get": events}
	problem, err := i.schemaOf(reflect.TypeFor[serve.Problem]())
	if err != nil {
		return nil, err
	}
	doc := object{
		"openapi": "3.1.0",
		"info":    object{"title": "terrarium", "version": terrarium.Version, "description": "The operations of a running terrarium. See serve in the reference of the command line."},
		"paths":   paths,
		"components": object{
			"schemas":         object{"problem": problem},
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
			"responses":       object{"problem": response("an error", "application/problem+json", object{"$ref": "#/components/schemas/problem"})},
		},
		"security": []object{{"token": []string{}}},
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}

// path describes an operation.
func (i inference) path(op operations.Operation) (object, error) {
	args, err := i.schemaOf(op.Args)
	if err != nil {
		return nil, err
	}
	describe(args, op.Args)
	result, err := i.resultOf(op)
	if err != nil {
		return nil, err
	}
	return object{
		"operationId": op.Name,
		"description": fmt.Sprintf("%s Needs the scope %v.", op.Doc, op.Scope),
		"requestBody": object{"content": object{"application/json": object{"schema": args}}},
		"responses": object{
			fmt.Sprint(http.StatusOK): response("the result", "application/json", result),
			"default":                 object{"$ref": "#/components/responses/problem"},
		},
	}, nil
}

// resultOf returns the schema of a result. That of tool depends on the tool.
func (i inference) resultOf(op operations.Operation) (any, error) {
	t := op.Result
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[operations.ToolResult]() {
		return object{}, nil
	}
	return i.schemaOf(t)
}

// describe adds the documentation of arguments, and says which are required.
func describe(s *jsonschema.Schema, t reflect.Type) {
	s.Required = nil
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if p := s.Properties[name]; p != nil && f.Tag.Get("doc") != "" {
			p.Description = f.Tag.Get("doc")
		}
		if strings.Contains(f.Tag.Get("op"), "required") {
			s.Required = append(s.Required, name)
		}
	}
}

func response(about, contentType string, schema any) object {
	return object{"description": about, "content": object{contentType: object{"schema": schema}}}
}

// eventsPath describes the stream of events, which has the arguments of subscribe.
func (i inference) eventsPath() (object, error) {
	args := reflect.TypeFor[operations.SubscribeArgs]()
	schema, err := i.schemaOf(args)
	if err != nil {
		return nil, err
	}
	describe(schema, args)
	var parameters []object
	for _, f := range reflect.VisibleFields(args) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		parameters = append(parameters, object{"name": name, "in": "query", "description": f.Tag.Get("doc"), "schema": schema.Properties[name]})
	}
	parameters = append(parameters,
		object{"name": "payload", "in": "query", "description": "1: with contents, which needs the scope operate", "schema": object{"type": "string"}},
		object{"name": "Last-Event-ID", "in": "header", "description": "the id of the last event that arrived; takes precedence over after", "schema": object{"type": "string"}})
	return object{
		"operationId": "events",
		"description": "Streams events as server-sent events: id is the cursor, event the kind, data the event (docs/reference/events.schema.json). Needs the scope read.",
		"parameters":  parameters,
		"responses": object{
			fmt.Sprint(http.StatusOK): response("the stream", "text/event-stream", object{"type": "string"}),
			"default":                 object{"$ref": "#/components/responses/problem"},
		},
	}, nil
}
