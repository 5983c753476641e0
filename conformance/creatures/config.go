package creatures

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// configs returns configurations with which the creature may start: the given one, or
// what its schema says.
func (b *bench) configs() []string {
	if b.subject.Config != "" {
		return []string{b.subject.Config}
	}
	out := []string{"{}"}
	for _, all := range []bool{false, true} {
		text, err := json.Marshal(newSampler().sample(b.schema, all, 0))
		if err == nil && text[0] == '{' && !slices.Contains(out, string(text)) {
			out = append(out, string(text))
		}
	}
	return out
}

// sampler makes values, as many as it has left.
type sampler struct{ left int }

// newSampler bounds a configuration, since a small schema can demand an immense one.
func newSampler() *sampler { return &sampler{1_000} }

// sample makes a value that fits a schema, as far as its plain keywords say: with the
// required members of an object, or with all.
func (s *sampler) sample(schema map[string]any, all bool, depth int) any {
	const deepest = 8
	if s.left--; s.left < 0 {
		return nil
	}
	for _, word := range []string{"const", "default"} {
		if v, ok := schema[word]; ok {
			return v
		}
	}
	for _, word := range []string{"examples", "enum"} {
		if list, ok := schema[word].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf"} {
		if list, ok := schema[word].([]any); ok && len(list) > 0 && schema["type"] == nil {
			if first, ok := list[0].(map[string]any); ok && depth < deepest {
				return s.sample(first, all, depth+1)
			}
		}
	}
	kind := schema["type"]
	if list, ok := kind.([]any); ok && len(list) > 0 {
		kind = list[0]
	}
	switch kind {
	case "string":
		least, _ := schema["minLength"].(float64)
		return strings.Repeat("x", int(min(max(least, 1), 1000)))
	case "integer", "number":
		least, ok := schema["minimum"].(float64)
		if !ok {
			least = 1
		}
		return least
	case "boolean":
		return true
	case "null":
		return nil
	case "array":
		item, _ := schema["items"].(map[string]any)
		least, _ := schema["minItems"].(float64)
		out := []any{}
		for range int(min(max(least, 1), 10)) {
			if depth < deepest {
				out = append(out, s.sample(item, all, depth+1))
			}
		}
		return out
	}
	out := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range sortedKeys(properties) {
		if of, ok := properties[name].(map[string]any); ok && depth < deepest && (all || slices.Contains(required, any(name))) {
			out[name] = s.sample(of, all, depth+1)
		}
	}
	return out
}

// misfits returns configurations that do not fit: with each member of the schema missing,
// and of each other type, and with a member that is not known.
func (b *bench) misfits() []string {
	base := map[string]any{}
	_ = json.Unmarshal([]byte(b.config), &base) // it is what the creature started with
	var out []string
	add := func(change func(map[string]any)) {
		m := maps.Clone(base)
		change(m)
		if text, err := json.Marshal(m); err == nil {
			out = append(out, string(text))
		}
	}
	add(func(m map[string]any) { m["no such attribute"] = map[string]any{"a": []any{1, nil}} })
	properties, _ := b.schema["properties"].(map[string]any)
	names := maps.Clone(base)
	maps.Copy(names, properties)
	const most = 30
	for _, name := range sortedKeys(names)[:min(len(names), most)] {
		add(func(m map[string]any) { delete(m, name) })
		for _, v := range []any{nil, true, -1.5, 1e300, "", "\u0000", "no such word", []any{}, []any{map[string]any{}}, map[string]any{"a": 1}} {
			add(func(m map[string]any) { m[name] = v })
		}
	}
	return out
}
