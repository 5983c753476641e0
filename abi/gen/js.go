package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// jsABI is sdk/js/abi.js: an expression with the numbers and names of the contract,
// which sdk/js/runtime.js gets as an argument.
func jsABI(specs []toolSpec) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n({\n\tversion: %d,\n\tallChannels: %d,\n", notice, abi.Version, abi.AllChannels)
	section := func(name string, entries func(add func(name string, n int))) {
		fmt.Fprintf(&b, "\t%s: {\n", name)
		entries(func(name string, n int) { fmt.Fprintf(&b, "\t\t%s: %d,\n", name, n) })
		b.WriteString("\t},\n")
	}
	section("codes", func(add func(string, int)) {
		for _, c := range abi.Codes {
			add(c.Name, int(c.Code.Status()))
		}
	})
	section("sources", func(add func(string, int)) {
		for _, s := range abi.Sources {
			add(s.Name, int(s.Source))
		}
	})
	section("kinds", func(add func(string, int)) {
		for _, k := range abi.Kinds {
			add(k.Name, int(k.Kind))
		}
	})
	section("features", func(add func(string, int)) {
		for _, f := range abi.Features {
			add(f.Name, int(f.Feature))
		}
	})
	section("levels", func(add func(string, int)) {
		for i, name := range abi.LevelNames {
			add(name, i)
		}
	})
	b.WriteString("\ttools: {\n")
	for _, s := range specs {
		args := make([]string, len(s.Args))
		for i, a := range s.Args {
			args[i] = fmt.Sprintf("%s: %q", lowerCamel(a.Name), a.Name+" "+a.Type)
		}
		fmt.Fprintf(&b, "\t\t%s: { name: %q, args: { %s } },\n", lowerCamel(s.Name), s.Name, strings.Join(args, ", "))
	}
	b.WriteString("\t},\n})\n")
	return b.Bytes(), nil
}

// jsLimits returns sdk/js/limits.js, which the fake host uses. It is not a part of abi.js,
// because the module that runs scripts does not need it.
func jsLimits() ([]byte, error) {
	text, err := json.MarshalIndent(limitDefaults(), "", "\t")
	return fmt.Appendf(nil, "// %s\n\nexport const limits = %s;\n", notice, text), err
}

// tsTypes are the types of the arguments of tools in TypeScript.
var tsTypes = map[string]string{
	"string": "string", "payload": "Data", "object": "{ [name: string]: unknown }", "integer": "number",
	"boolean": "boolean", "wires": "{ channel: string; alias?: string }[]",
}

// jsTypes is sdk/js/abi.d.ts.
func jsTypes(specs []toolSpec) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\nimport type { Data } from \"./terrarium\";\n", notice)
	union := func(name, doc string, names []string) {
		fmt.Fprintf(&b, "\n/** %s */\nexport type %s =\n\t| %s;\n", doc, name, strings.Join(names, "\n\t| "))
	}
	var codes, kinds, features, levels []string
	for _, c := range abi.Codes {
		codes = append(codes, fmt.Sprintf("%q /* %s */", c.Name, c.Doc))
	}
	for _, k := range abi.Kinds {
		kinds = append(kinds, fmt.Sprintf("%q /* %s */", k.Name, k.Doc))
	}
	for _, f := range abi.Features {
		features = append(features, fmt.Sprintf("%q /* %s */", f.Name, f.Doc))
	}
	for _, l := range abi.LevelNames {
		levels = append(levels, fmt.Sprintf("%q", l))
	}
	union("Code", "The codes of errors.", codes)
	union("Kind", "The kinds of deliveries.", kinds)
	union("Feature", "The optional parts of the contract.", features)
	union("Level", "The levels of log lines.", levels)
	b.WriteString("\n/** The group tools. Each returns its result, and throws a TerrariumError if the host refuses the call. */\nexport interface Tools {\n")
	for _, s := range specs {
		fmt.Fprintf(&b, "\t/** %s */\n\t%s(args", s.Doc, lowerCamel(s.Name))
		if len(s.Args) == 0 || !s.Args[0].Required {
			b.WriteByte('?')
		}
		b.WriteString(": {")
		for _, a := range s.Args {
			b.WriteString("\n")
			if a.Doc != "" {
				fmt.Fprintf(&b, "\t\t/** %s */\n", a.Doc)
			}
			optional := "?"
			if a.Required {
				optional = ""
			}
			typ, err := a.tsType()
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "\t\t%s%s: %s;", lowerCamel(a.Name), optional, typ)
		}
		if len(s.Args) > 0 {
			b.WriteString("\n\t")
		}
		b.WriteString("}): any;\n")
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

// tsType returns the type of an argument in TypeScript.
func (a toolArg) tsType() (string, error) {
	if len(a.Enum) == 0 {
		return tsTypes[a.Type], nil
	}
	values := make([]string, len(a.Enum))
	for i, v := range a.Enum {
		text, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		values[i] = string(text)
	}
	return strings.Join(values, " | "), nil
}

// lowerCamel writes a_name as aName.
func lowerCamel(name string) string {
	name = camel(name)
	return strings.ToLower(name[:1]) + name[1:]
}
