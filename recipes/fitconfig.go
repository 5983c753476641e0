package recipes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/internal/misfit"
)

// schema returns the schema of the module's configuration, if it has a usable
// one. A module with a schema that is none is not the recipe's mistake. Schemas
// with references are left alone: one that refers to itself would have the
// library call itself until the stack overflows, which ends the process.
func (m *module) schema() *jsonschema.Resolved {
	if m.resolved != nil || m.unresolved {
		return m.resolved
	}
	m.unresolved = true
	var s jsonschema.Schema
	if len(m.info.Manifest.Config) == 0 || json.Unmarshal(m.info.Manifest.Config, &s) != nil {
		return nil
	}
	// As the library understood it: in the manifest's own spelling a reference
	// could be written so that it is not seen.
	text, err := json.Marshal(&s)
	if err != nil || bytes.Contains(text, []byte(`"$ref"`)) || bytes.Contains(text, []byte(`"$dynamicRef"`)) {
		return nil
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil
	}
	m.resolved = resolved
	return resolved
}

// config checks the configuration against the schema of the manifest: attribute
// by attribute, so that all mistakes are told and each can be pointed at, then as a
// whole.
func (f *fitting) config() {
	schema := f.module.schema()
	if schema == nil {
		return
	}
	config := map[string]any{}
	if len(f.spec.Config) > 0 && json.Unmarshal(f.spec.Config, &config) != nil {
		return
	}
	unknown, missing := f.unknownAttributes(schema.Schema(), config), f.missingAttributes(schema.Schema(), config)
	if f.partial || f.misfitAttributes(schema.Schema(), config) || unknown || missing {
		return
	}
	if err := validate(schema, config); err != nil {
		where, text := misfit.Of(err)
		f.misfits(where, text)
	}
}

// misfitAttributes reports every attribute whose value is refused by its own part of the
// schema.
func (f *fitting) misfitAttributes(s *jsonschema.Schema, config map[string]any) bool {
	found := false
	for _, name := range slices.Sorted(maps.Keys(config)) {
		if s.Properties[name] == nil {
			continue
		}
		// As the property of an object, so that places read as those of the whole do.
		part := &jsonschema.Schema{Schema: s.Schema, Properties: map[string]*jsonschema.Schema{name: s.Properties[name].CloneSchemas()}}
		resolved, err := part.Resolve(nil)
		if err != nil {
			continue // the whole is asked
		}
		if err := validate(resolved, map[string]any{name: config[name]}); err != nil {
			where, text := misfit.Of(err)
			f.misfits(where, text)
			found = true
		}
	}
	return found
}

// validate recovers from the defects of the library: a schema comes with a
// module, which may be hostile.
func validate(schema *jsonschema.Resolved, config map[string]any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = nil
		}
	}()
	return schema.Validate(config)
}

func (f *fitting) unknownAttributes(s *jsonschema.Schema, config map[string]any) bool {
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil && len(s.PatternProperties) == 0
	found := false
	known := slices.Sorted(maps.Keys(s.Properties))
	for _, name := range slices.Sorted(maps.Keys(config)) {
		if !closed || s.Properties[name] != nil {
			continue
		}
		found = true
		src, at := f.attribute(name)
		d := Diagnostic{Summary: "Unknown attribute of a configuration", Detail: fmt.Sprintf("The module %s has no attribute %q.", f.name(), name), Suggestion: nearest(name, known)}
		if d.Suggestion == "" && len(known) > 0 {
			d.Remedy = fmt.Sprintf("Its attributes are %s.", enumerate(known))
		}
		src.report(at, d)
	}
	return found
}

func (f *fitting) missingAttributes(s *jsonschema.Schema, config map[string]any) bool {
	if f.partial {
		return false
	}
	found := false
	for _, name := range s.Required {
		if _, has := config[name]; has {
			continue
		}
		found = true
		src, at := f.attribute("")
		what := ""
		if p := s.Properties[name]; p != nil && p.Description != "" {
			what = fmt.Sprintf(" (%s)", p.Description)
		}
		src.report(at, Diagnostic{Summary: "Configuration is incomplete", Detail: fmt.Sprintf("The module %s requires %q%s.", f.name(), name, what),
			Remedy: fmt.Sprintf("Add config = { %s = … }.", name)})
	}
	return found
}

// misfits reports what a schema objects to.
func (f *fitting) misfits(where, text string) {
	name, _, _ := strings.Cut(where, "/")
	src, at := f.attribute(name)
	d := Diagnostic{Summary: "Configuration does not fit", Detail: fmt.Sprintf("The module %s rejects it: %s.", f.name(), text)}
	if where != "" {
		d.Detail = fmt.Sprintf("The module %s rejects %s: %s.", f.name(), strings.ReplaceAll(where, "/", "."), text)
	}
	if len(f.spec.Secret) > 0 && (name == "" || slices.Contains(f.spec.Secret, name)) {
		d.Detail = fmt.Sprintf("The module %s rejects it. The reason is not shown because it involves a sensitive value.", f.name())
	}
	if p := f.module.schema().Schema().Properties[name]; p != nil && p.Description != "" {
		d.Remedy = fmt.Sprintf("%q: %s.", name, strings.TrimSuffix(p.Description, "."))
	}
	src.report(at, d)
}

// attribute returns where an attribute of the configuration is written, or as
// near to it as can be told.
func (f *fitting) attribute(name string) (source, hcl.Range) {
	var nearby []source
	for _, s := range f.sources() {
		a := s.d.attr("config")
		if a == nil {
			continue
		}
		nearby = append(nearby, s)
		pairs, diags := hcl.ExprMap(a.Expr)
		if diags.HasErrors() {
			continue
		}
		for _, p := range pairs {
			if key, ok := s.in.eval(s.scope.secretly(), p.Key); ok && !key.IsNull() && key.Type().FriendlyName() == "string" {
				if key, _ = key.Unmark(); key.AsString() == name {
					return s, hcl.RangeBetween(p.Key.Range(), p.Value.Range())
				}
			}
		}
	}
	if len(nearby) > 0 {
		return nearby[0], nearby[0].d.attr("config").Expr.Range()
	}
	return f.sources()[0], f.d.at
}
