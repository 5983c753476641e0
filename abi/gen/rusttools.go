package main

import (
	"bytes"
	"fmt"
	"strings"
)

// rustTools is sdk/rust/src/tools.rs: one method of Turn for each group tool. Arguments
// that are required are parameters, the others are fields of a struct.
func rustTools(specs []toolSpec) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `// %s

//! The arguments of the group tools that are not required, and the enumerations.
//!
//! The tools are methods of [`+"`Turn`"+`]. Their results are JSON, for [`+"`Json::parse`](crate::Json::parse)"+`.

use crate::json::Object;
use crate::{Result, Turn};

/// A channel on which a creature listens or sends.
#[derive(Clone, Copy, Debug)]
pub struct Wire<'a> {
    /// The id or the name of the channel.
    pub channel: &'a str,
    /// The creature's alias for the channel; by default the channel's name.
    pub alias: Option<&'a str>,
}
`, notice)
	for _, s := range specs {
		rustToolTypes(&b, s)
	}
	b.WriteString("\n/// The group tools.\nimpl Turn {\n")
	for i, s := range specs {
		if i > 0 {
			b.WriteByte('\n')
		}
		rustToolMethod(&b, s)
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// rustToolTypes writes the enumerations of a tool, and the struct of its optional
// arguments.
func rustToolTypes(b *bytes.Buffer, s toolSpec) {
	for _, a := range s.Args {
		if len(a.Enum) == 0 {
			continue
		}
		name := rustCamel(s.Name) + rustCamel(a.Name)
		fmt.Fprintf(b, "\n/// The argument `%s` of `%s`.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum %s {\n", a.Name, s.Name, name)
		for _, value := range a.Enum {
			fmt.Fprintf(b, "    /// `%s`\n    %s,\n", value, rustCamel(value))
		}
		fmt.Fprintf(b, "}\n\nimpl %s {\n    fn name(self) -> &'static str {\n        match self {\n", name)
		for _, value := range a.Enum {
			fmt.Fprintf(b, "            %s::%s => %q,\n", name, rustCamel(value), value)
		}
		b.WriteString("        }\n    }\n}\n")
	}
	if !hasOptional(s) {
		return
	}
	lifetime := ""
	if optionalBorrows(s) {
		lifetime = "<'a>"
	}
	fmt.Fprintf(b, "\n/// The optional arguments of [`Turn::%s`].\n#[derive(Clone, Copy, Debug, Default)]\npub struct %s%s {\n", s.Name, rustCamel(s.Name), lifetime)
	for _, a := range s.Args {
		if a.Required {
			continue
		}
		typ := rustArg(s, a, "&'a ")
		if a.Type != "wires" {
			typ = "Option<" + typ + ">"
		}
		fmt.Fprintf(b, "    /// %s\n    pub %s: %s,\n", rustArgDoc(a), a.Name, typ)
	}
	b.WriteString("}\n")
}

func rustToolMethod(b *bytes.Buffer, s toolSpec) {
	fmt.Fprintf(b, "    /// %s %s\n", rustDoc(s.Doc), map[bool]string{true: "For privileged creatures.", false: "For every creature."}[s.Privileged])
	separator := "    ///\n"
	params := []string{"&mut self"}
	for _, a := range s.Args {
		if !a.Required {
			continue
		}
		fmt.Fprintf(b, "%s    /// - `%s`: %s\n", separator, a.Name, rustArgDoc(a))
		separator = ""
		params = append(params, a.Name+": "+rustArg(s, a, "&"))
	}
	if hasOptional(s) {
		lifetime := ""
		if optionalBorrows(s) {
			lifetime = "<'_>"
		}
		params = append(params, "options: "+rustCamel(s.Name)+lifetime)
	}
	fmt.Fprintf(b, "    pub fn %s(%s) -> Result<String> {\n        let mut args = Object::new();\n", s.Name, strings.Join(params, ", "))
	for _, a := range s.Args {
		switch {
		case a.Required:
			fmt.Fprintf(b, "        %s;\n", rustPut(a, a.Name))
		case a.Type == "wires":
			fmt.Fprintf(b, "        if !options.%[1]s.is_empty() {\n            %[2]s;\n        }\n", a.Name, rustPut(a, "options."+a.Name))
		default:
			fmt.Fprintf(b, "        if let Some(value) = options.%s {\n            %s;\n        }\n", a.Name, rustPut(a, "value"))
		}
	}
	fmt.Fprintf(b, "        self.tool(%q, &args.end())\n    }\n", s.Name)
}

// rustPut is the call that adds an argument to the object of arguments.
func rustPut(a toolArg, value string) string {
	method := map[string]string{
		"string": "text", "payload": "payload", "object": "json", "integer": "whole", "boolean": "bool", "wires": "wires",
	}[a.Type]
	switch {
	case len(a.Enum) > 0:
		value += ".name()"
	case a.Type == "payload" && a.Required:
		value += ".as_ref()"
	}
	return fmt.Sprintf("args.%s(%q, %s)", method, a.Name, value)
}

func rustArg(s toolSpec, a toolArg, borrowed string) string {
	if len(a.Enum) > 0 {
		return rustCamel(s.Name) + rustCamel(a.Name)
	}
	switch a.Type {
	case "payload":
		if !a.Required { // a field, which has one type
			return borrowed + "[u8]"
		}
		return "impl AsRef<[u8]>"
	case "integer":
		return "i64"
	case "boolean":
		return "bool"
	case "wires":
		return borrowed + "[Wire<" + strings.TrimSpace(strings.TrimPrefix(borrowed, "&")) + ">]"
	}
	return borrowed + "str"
}

func rustArgDoc(a toolArg) string {
	doc := sentence(a.Doc)
	if doc == "" {
		doc = "The argument `" + a.Name + "`."
	}
	if a.Type == "object" {
		doc += " A JSON object."
	}
	return doc
}

func hasOptional(s toolSpec) bool {
	for _, a := range s.Args {
		if !a.Required {
			return true
		}
	}
	return false
}

// optionalBorrows reports whether an optional argument is a text, an object or a list.
func optionalBorrows(s toolSpec) bool {
	for _, a := range s.Args {
		if !a.Required && len(a.Enum) == 0 && a.Type != "integer" && a.Type != "boolean" {
			return true
		}
	}
	return false
}
