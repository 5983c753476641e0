package tools_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed47132306/terrarium/engine/tools"
)

func TestEveryToolIsDescribed(t *testing.T) {
	for _, info := range tools.List() {
		if info.Doc == "" || !strings.HasSuffix(info.Doc, ".") {
			t.Errorf("%s: %q is no sentence", info.Name, info.Doc)
		}
		for _, s := range []json.RawMessage{info.Args, info.Result} {
			var schema jsonschema.Schema
			if err := json.Unmarshal(s, &schema); err != nil {
				t.Fatalf("%s: %s: %v", info.Name, s, err)
			}
			if _, err := schema.Resolve(nil); err != nil || schema.Type != "object" {
				t.Errorf("%s: the schema %s describes no object: %v", info.Name, s, err)
			}
		}
		if info.ArgsType.Kind() != reflect.Struct || info.ResultType.Kind() != reflect.Struct {
			t.Errorf("%s: the types are %v and %v", info.Name, info.ArgsType, info.ResultType)
		}
	}
}
