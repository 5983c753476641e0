package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// asRaw is sdk/assemblyscript/assembly/raw.ts.
func asRaw() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\n/** An error code of the contract. */\nexport const enum Code {\n  OK = 0,\n", notice)
	for _, c := range abi.Codes {
		asMember(&b, c.Name, int64(c.Code), c.Doc)
	}
	b.WriteString("}\n\n/** A source: something that a creature can read. */\nexport const enum Source {\n")
	for _, s := range abi.Sources {
		asMember(&b, s.Name, int64(s.Source), s.Doc)
	}
	b.WriteString("}\n\n/** A kind of delivery: why a creature is called. */\nexport const enum Kind {\n")
	for _, k := range abi.Kinds {
		asMember(&b, k.Name, int64(k.Kind), k.Doc)
	}
	b.WriteString("}\n\n/** The level of a log line. */\nexport const enum Level {\n")
	for i, name := range abi.LevelNames {
		fmt.Fprintf(&b, "  %s = %d,\n", camel(name), i)
	}
	b.WriteString("}\n\n/** An optional part of the contract. */\nexport const enum Feature {\n")
	for _, f := range abi.Features {
		asMember(&b, f.Name, int64(f.Feature), f.Doc)
	}
	b.WriteString("}\n\nconst names: StaticArray<string> = [\n  \"ok\",\n")
	for _, c := range abi.Codes {
		fmt.Fprintf(&b, "  %q,\n", c.Name)
	}
	b.WriteString("];\n\n/** Returns the stable name of a code, for example \"not_found\". */\n")
	b.WriteString("export function codeName(code: Code): string {\n  return <u32>code < <u32>names.length ? names[code] : \"unknown\";\n}\n")
	for _, f := range abi.Functions {
		fmt.Fprintf(&b, "\n/**\n%s */\n", wrap(" *", f.Doc, 110))
		fmt.Fprintf(&b, "// @ts-ignore: decorator\n@external(%q, %q)\nexport declare function %s(%s): %s;\n",
			abi.ImportModule, f.Name, f.Name, asParams(f), typeName(f.Result))
	}
	return b.Bytes()
}

func asMember(b *bytes.Buffer, name string, number int64, doc string) {
	fmt.Fprintf(b, "  /** %s */\n  %s = %d,\n", doc, camel(name), number)
}

func asParams(f abi.Function) string {
	params := make([]string, len(f.Params))
	for i, p := range f.Params {
		kind := typeName(p.Type)
		if roleOf(f, i) != number {
			kind = "usize"
		}
		params[i] = p.Name + ": " + kind
	}
	return strings.Join(params, ", ")
}

// asTypes are the types of the arguments of tools in AssemblyScript.
var asTypes = map[string]string{
	"string": "string", "object": "string", "integer": "i64", "boolean": "bool", "wires": "Wires", "payload": "Uint8Array",
}

// asTools is sdk/assemblyscript/assembly/tools.ts. Required arguments are those of a
// constructor; each optional one is a method that returns the call.
func asTools(specs []toolSpec) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\nimport { ToolCall, Wires } from \"./call\";\n", notice)
	for _, s := range specs {
		name := camel(s.Name)
		generic, params, set := "", []string{}, ""
		for _, a := range s.Args {
			if a.Required {
				params = append(params, a.Name+": "+asTypes[a.Type])
				set += fmt.Sprintf("    this.%s(%q, %s);\n", asSetter(a), a.Name, a.Name)
			}
		}
		fmt.Fprintf(&b, "\n/** A call of the tool %s. %s */\nexport class %s%s extends ToolCall {\n", s.Name, s.Doc, name, generic)
		for _, a := range s.Args {
			if a.Doc != "" && a.Required {
				set = fmt.Sprintf("    // %s: %s\n", a.Name, a.Doc) + set
			}
		}
		fmt.Fprintf(&b, "  constructor(%s) {\n    super(%q);\n%s  }\n", strings.Join(params, ", "), s.Name, set)
		for _, a := range s.Args {
			if a.Required {
				continue
			}
			if a.Doc != "" {
				fmt.Fprintf(&b, "\n  /** Sets %s: %s. */", a.Name, a.Doc)
			} else {
				fmt.Fprintf(&b, "\n  /** Sets %s. */", a.Name)
			}
			fmt.Fprintf(&b, "\n  %s(value: %s): %s {\n    this.%s(%q, value);\n    return this;\n  }\n",
				asName(a.Name), asTypes[a.Type], name, asSetter(a), a.Name)
		}
		b.WriteString("}\n")
	}
	return b.Bytes()
}

// asName is a table name as AssemblyScript spells methods.
func asName(name string) string {
	spelt := camel(name)
	return strings.ToLower(spelt[:1]) + spelt[1:]
}

// asSetter is the method of ToolCall that sets an argument.
func asSetter(a toolArg) string {
	switch a.Type {
	case "string":
		return "setText"
	case "integer":
		return "setWhole"
	case "boolean":
		return "setBool"
	case "payload":
		return "setPayload"
	case "wires":
		return "setWires"
	}
	return "setJson"
}

// asNumbers is sdk/assemblyscript/fake/abi.js: the numbers that the fake host has in common
// with the creatures.
func asNumbers() ([]byte, error) {
	codes, sources, kinds, features := map[string]int{"ok": 0}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, c := range abi.Codes {
		codes[c.Name] = int(c.Code)
	}
	for _, s := range abi.Sources {
		sources[s.Name] = int(s.Source)
	}
	for _, k := range abi.Kinds {
		kinds[k.Name] = int(k.Kind)
	}
	for _, f := range abi.Features {
		features[f.Name] = int(f.Feature)
	}
	var effects []string
	results := map[string]string{}
	for _, f := range abi.Functions {
		results[f.Name] = typeName(f.Result)
		if f.Effect {
			effects = append(effects, f.Name)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n", notice)
	for _, v := range []struct {
		name  string
		value any
	}{
		{"importModule", abi.ImportModule}, {"codes", codes}, {"sources", sources}, {"kinds", kinds}, {"features", features},
		{"levels", abi.LevelNames}, {"limits", limitDefaults()}, {"effects", effects}, {"results", results},
	} {
		text, err := json.MarshalIndent(v.value, "", "  ")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\nexport const %s = %s;\n", v.name, text)
	}
	return b.Bytes(), nil
}
