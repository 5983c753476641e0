package main

import (
	"bytes"
	"fmt"
	"strings"
)

// cTools is sdk/c/tools.h: a function with typed arguments for each group tool.
func cTools(specs []toolSpec) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `// %s
//
// The group tools with typed arguments. The arguments are named, and those that are not
// required may be left out:
//
//	tr_bytes result;
//	TR_TRY(tr_group_channel(t, &result, .action = TR_GROUP_CHANNEL_CREATE, .name = name));
//
// The result is JSON. If it is not needed, NULL may take its place.
#ifndef TERRARIUM_TOOLS_H
#define TERRARIUM_TOOLS_H

#include "arguments.h"
`, notice)
	for _, s := range specs {
		cTool(&b, &s)
	}
	b.WriteString("\n#endif // TERRARIUM_TOOLS_H\n")
	return b.Bytes()
}

func cTool(b *bytes.Buffer, s *toolSpec) {
	for _, a := range s.Args {
		if len(a.Enum) == 0 {
			continue
		}
		fmt.Fprintf(b, "\nenum tr_%s_%s {\n", s.Name, a.Name)
		for i, value := range a.Enum {
			fmt.Fprintf(b, "\t%s = %d,\n", cEnumerator(s, value), i+1)
		}
		b.WriteString("};\n")
	}
	fmt.Fprintf(b, "\ntypedef struct tr_%s_args {\n", s.Name)
	for _, a := range s.Args {
		doc := a.Doc
		if a.Required {
			doc = strings.TrimSuffix("required; "+doc, "; ")
		}
		if doc != "" {
			doc = " // " + doc
		}
		fmt.Fprintf(b, "\t%s %s TR_UNSET;%s\n", cArgType(s, &a), a.Name, doc)
	}
	fmt.Fprintf(b, "} tr_%s_args;\n\n", s.Name)
	b.WriteString(wrap("//", s.Doc, 90))
	fmt.Fprintf(b, "#define tr_%s(t, result, ...) tr_%s_with(t, TR_ARGS(tr_%s_args, __VA_ARGS__), result)\n\n", s.Name, s.Name, s.Name)
	fmt.Fprintf(b, "TR_UNUSED static int32_t tr_%s_with(tr_turn *t, tr_%s_args args, tr_bytes *result) {\n\ttr_buffer json = TR_EMPTY;\n", s.Name, s.Name)
	for _, a := range s.Args {
		value := "args." + a.Name
		if len(a.Enum) > 0 {
			value = fmt.Sprintf("\"%s\", %s", strings.Join(append([]string{""}, a.Enum...), "\\0"), value)
		}
		given := ""
		if a.Type == "payload" && !a.Required { // an empty payload is one too
			given = "if (" + value + ".ptr) "
		}
		fmt.Fprintf(b, "\t%str_arg_%s(&json, TR(\"%s\"), %s);\n", given, cArgKind(&a), a.Name, value)
	}
	fmt.Fprintf(b, "\treturn tr_call(t, TR(\"%s\"), &json, result);\n}\n", s.Name)
}

func cEnumerator(s *toolSpec, value string) string { return "TR_" + upper(s.Name) + "_" + upper(value) }

// cArgKind is the suffix of the function in arguments.h that writes such an argument.
func cArgKind(a *toolArg) string {
	switch {
	case len(a.Enum) > 0:
		return "choice"
	case a.Type == "string":
		return "text"
	case a.Type == "object":
		return "json"
	}
	return a.Type
}

func cArgType(s *toolSpec, a *toolArg) string {
	switch {
	case len(a.Enum) > 0:
		return "enum tr_" + s.Name + "_" + a.Name
	case a.Type == "integer":
		return "int64_t"
	case a.Type == "boolean":
		return "tr_choice"
	case a.Type == "wires":
		return "tr_wires"
	}
	return "tr_bytes"
}

// cppTools is sdk/cpp/tools.hpp, which wraps tools.h.
func cppTools(specs []toolSpec) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `// %s
//
// The group tools with typed arguments. The arguments are named, and those that are not
// required may be left out:
//
//	TRY(group_channel(t, {.action = TR_GROUP_CHANNEL_CREATE, .name = name}));
//
// The result is JSON.
#ifndef TERRARIUM_TOOLS_HPP
#define TERRARIUM_TOOLS_HPP

#include "terrarium.hpp"
#include "tools.h"

namespace terrarium {
`, notice)
	for _, s := range specs {
		b.WriteString("\n" + wrap("//", s.Doc, 90))
		fmt.Fprintf(&b, "inline Result<Bytes> %s(Turn &t, const tr_%s_args &args = {}) { return t.call(tr_%s_with, args); }\n", s.Name, s.Name, s.Name)
	}
	b.WriteString("\n} // namespace terrarium\n\n#endif // TERRARIUM_TOOLS_HPP\n")
	return b.Bytes()
}
