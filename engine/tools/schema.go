package tools

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/internal/misfit"
)

// toolSchemasJSON has the same content as docs/reference/tools.schema.json: go
// generate ./cmd/internal/opsdoc writes both from the Go types in the table of
// tools.
//
//go:embed tools.schema.json
var toolSchemasJSON []byte

// Info describes one group tool.
type Info struct {
	Name       string `json:"name"`
	Privileged bool   `json:"privileged"` // only privileged creatures may call it
	Doc        string `json:"doc"`
	// Args and Result are the JSON Schemas of its arguments and its result,
	// each complete in itself.
	Args   json.RawMessage `json:"args"`
	Result json.RawMessage `json:"result"`
	// ArgsType and ResultType are the structs from which the schemas are
	// generated.
	ArgsType   reflect.Type `json:"-"`
	ResultType reflect.Type `json:"-"`
}

// List lists the group tools in the order of the reference.
func List() []Info {
	list := make([]Info, len(table))
	for i := range table {
		f := &table[i]
		list[i] = Info{
			Name: f.Name, Privileged: f.Privileged, Doc: f.Doc,
			ArgsType: reflect.TypeOf(f.args), ResultType: reflect.TypeOf(f.result),
		}
		if s := toolSchemas()[f.Name]; s != nil {
			list[i].Args, list[i].Result = bytes.Clone(s.info.Args), bytes.Clone(s.info.Result)
		}
	}
	return list
}

// toolSchema is the schema that the arguments of a tool are checked against.
type toolSchema struct {
	info Info
	args *jsonschema.Resolved
}

// toolSchemas parses the schemas on first use.
var toolSchemas = sync.OnceValue(func() map[string]*toolSchema {
	schemas, err := readToolSchemas(toolSchemasJSON)
	if err != nil {
		panic("tools: tools.schema.json is not the output of go generate: " + err.Error())
	}
	return schemas
})

func readToolSchemas(text []byte) (map[string]*toolSchema, error) {
	var file struct {
		Tools []Info `json:"tools"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	out := map[string]*toolSchema{}
	for _, info := range file.Tools {
		var s jsonschema.Schema
		if err := json.Unmarshal(info.Args, &s); err != nil {
			return nil, err
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			return nil, err
		}
		out[info.Name] = &toolSchema{info, resolved}
	}
	return out, nil
}

// Check refuses arguments that do not match the schema of the tool. Some tools
// refuse more, where a schema cannot express the rule well.
func (f *Tool) Check(args []byte) error {
	s := toolSchemas()[f.Name]
	if len(bytes.TrimSpace(args)) == 0 {
		args = []byte("{}")
	}
	if !utf8.Valid(args) {
		return errtext.Invalid(f.Name, "the arguments are not UTF-8", `write {"base64": "…"} for bytes that are not text`)
	}
	if err := checkToolJSON(args); err != nil { // so that policies, and readers of the log, see the same as the tool
		return err
	}
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return errtext.Invalid(f.Name, "the arguments are not JSON: "+err.Error(), "pass one JSON object")
	}
	if s == nil {
		return nil
	}
	if err := s.args.Validate(value); err != nil {
		return errtext.Invalid(f.Name, "the arguments do not match: "+errtext.Clip(objection(err)), s.usage())
	}
	return nil
}

// usage lists the arguments of the tool.
func (s *toolSchema) usage() string {
	names := slices.Sorted(maps.Keys(s.args.Schema().Properties))
	if len(names) == 0 {
		return "the tool takes no arguments"
	}
	return "the tool takes " + strings.Join(names, ", ") + ": see docs/reference/tools.md"
}

// objection names the argument that a schema refuses, and why.
func objection(err error) string {
	where, text := misfit.Of(err)
	if where == "" {
		return text
	}
	return where + ": " + text
}
