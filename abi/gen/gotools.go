package main

import (
	"bytes"
	"fmt"
	"go/format"
)

// goToolTypes are the types of the arguments in Go, and how they are appended.
var goToolTypes = map[string]struct{ typ, empty, add string }{
	"string":  {"string", `a.%s != ""`, "text"},
	"payload": {"[]byte", "a.%s != nil", "payload"},
	"object":  {"JSON", "a.%s != nil", "raw"},
	"headers": {"[]Header", "a.%s != nil", "headers"},
	"integer": {"int64", "a.%s != 0", "whole"},
	"boolean": {"*bool", "a.%s != nil", "boolean"},
	"wires":   {"[]ChannelWire", "a.%s != nil", "wires"},
}

// goTools is sdk/go/terrarium/ztools.go.
func goTools(specs []toolSpec) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\npackage terrarium\n", notice)
	for _, s := range specs {
		name := camel(s.Name)
		if len(s.Args) > 0 {
			fmt.Fprintf(&b, "\n// %sArgs are the arguments of [Turn.%s]. Optional fields with the zero value are left out.\ntype %sArgs struct {\n", name, name, name)
			for _, a := range s.Args {
				fmt.Fprintf(&b, "\t%s %s %s\n", camel(a.Name), goToolTypes[a.goType()].typ, a.comment())
			}
			b.WriteString("}\n")
		}
		fmt.Fprintf(&b, "\n// %s calls the tool %s and returns its result. %s\n", name, s.Name, s.Doc)
		fmt.Fprintf(&b, "func (t *Turn) %s(a %sArgs) (JSON, error) {\n\tvar o object\n", name, name)
		for _, a := range s.Args {
			kind := goToolTypes[a.goType()]
			line := fmt.Sprintf("o.%s(%q, a.%s)\n", kind.add, a.Name, camel(a.Name))
			if !a.Required {
				line = fmt.Sprintf("if "+kind.empty+" {\n%s}\n", camel(a.Name), line)
			}
			b.WriteString(line)
		}
		fmt.Fprintf(&b, "\treturn t.Tool(%q, o.end())\n}\n", s.Name)
	}
	return format.Source(b.Bytes())
}

// goType returns the key of goToolTypes for an argument.
func (a toolArg) goType() string {
	if a.Type == "object" && a.Name == "headers" {
		return "headers"
	}
	return a.Type
}

// comment says what an argument is for, and whether it may be left out.
func (a toolArg) comment() string {
	switch {
	case a.Required && a.Doc == "":
		return ""
	case a.Required:
		return "// " + a.Doc
	case a.Doc == "":
		return "// optional"
	}
	return "// optional; " + a.Doc
}
