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

// schema returns the schema of the module's configuration, if it is usable. An invalid
// schema is not a mistake of the recipe. Schemas with references are skipped: one that
// refers to itself would overflow the stack of the library and end the process.
func (m *module) schema() *jsonschema.Resolved {
	if m.resolved != nil || m.unresolved {
		return m.resolved
	}
	m.unresolved = true
	var s jsonschema.Schema
	if len(m.info.Manifest.Config) == 0 || json.Unmarshal(m.info.Manifest.Config, &s) != nil {
		return nil
	}
	// Check the schema as the library read it: the manifest may spell a reference
	// differently.
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

// part returns the schema of one property; nil if it is not usable. It stays a property of an
// object, so that paths in errors are the same as for the whole configuration.
func (m *module) part(s *jsonschema.Schema, name string) *jsonschema.Resolved {
	part, known := m.parts[name]
	if !known {
		alone := &jsonschema.Schema{Schema: s.Schema, Properties: map[string]*jsonschema.Schema{name: s.Properties[name].CloneSchemas()}}
		part, _ = alone.Resolve(nil)
		if m.parts == nil {
			m.parts = map[string]*jsonschema.Resolved{}
		}
		m.parts[name] = part
	}
	return part
}

// config checks the configuration against the schema of the manifest: first each
// attribute, so that each mistake is reported at its place, then the whole.
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

// misfitAttributes reports every attribute whose value does not match its part of the
// schema.
func (f *fitting) misfitAttributes(s *jsonschema.Schema, config map[string]any) bool {
	found := false
	for _, name := range slices.Sorted(maps.Keys(config)) {
		if s.Properties[name] == nil {
			continue
		}
		part := f.module.part(s, name)
		if part == nil {
			continue // left to the check of the whole
		}
		if err := validate(part, map[string]any{name: config[name]}); err != nil {
			where, text := misfit.Of(err)
			f.misfits(where, text)
			found = true
		}
	}
	return found
}

// validate recovers from panics of the library: the schema comes from a module, which may
// be hostile.
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

func (f *fitting) misfits(where, text string) {
	name, _, _ := strings.Cut(where, "/")
	src, at := f.attribute(name)
	d := Diagnostic{Summary: "Configuration does not fit", Detail: fmt.Sprintf("The module %s rejects it: %s.", f.name(), text)}
	if where != "" {
		d.Detail = fmt.Sprintf("The module %s rejects the attribute %s: %s.", f.name(), strings.ReplaceAll(where, "/", "."), text)
	}
	if len(f.spec.Secret) > 0 && (name == "" || slices.Contains(f.spec.Secret, name)) {
		d.Detail = fmt.Sprintf("The module %s rejects it. The reason is not shown because it involves a sensitive value.", f.name())
	}
	if p := f.module.schema().Schema().Properties[name]; p != nil && p.Description != "" {
		d.Remedy = fmt.Sprintf("%q: %s.", name, strings.TrimSuffix(p.Description, "."))
	}
	src.report(at, d)
}

// attribute returns where an attribute of the configuration is written, or the nearest
// place.
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
