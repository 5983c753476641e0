package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// zigRaw is sdk/zig/src/raw.zig.
func zigRaw() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\n//! The creature contract, version %d. Its rules are in abi/README.md.\n\n", notice, abi.Version)
	fmt.Fprintf(&b, "pub const abi_version = %d;\n\n/// The handle that stands for every channel the creature may send on.\npub const all_channels: i32 = %d;\n\n", abi.Version, abi.AllChannels)
	b.WriteString("/// The names that a creature exports.\npub const exports = struct {\n")
	for _, e := range [][2]string{{"marker", abi.ExportMarker}, {"init", abi.ExportInit}, {"handle", abi.ExportHandle}, {"stop", abi.ExportStop}, {"graph_changed", abi.ExportGraphChanged}} {
		fmt.Fprintf(&b, "    pub const %s = %q;\n", e[0], e[1])
	}
	fmt.Fprintf(&b, "};\n\n/// The custom section of the manifest.\npub const manifest_section = %q;\n\n", abi.ManifestSection)
	zigCodes(&b)
	zigEnums(&b)
	zigLimits(&b)
	zigCalls(&b)
	return b.Bytes()
}

// zigCodes writes the codes as an enum of results and as an error set, and how one
// becomes the other.
func zigCodes(b *bytes.Buffer) {
	b.WriteString("/// The result of a hostcall that fails, or ok.\npub const Code = enum(i32) {\n    ok = 0,\n")
	for _, c := range abi.Codes {
		fmt.Fprintf(b, "    /// %s\n    %s = %d,\n", c.Doc, c.Name, c.Code.Status())
	}
	b.WriteString("    _,\n};\n\n/// The codes as errors.\npub const Error = error{\n")
	for _, c := range abi.Codes {
		fmt.Fprintf(b, "    /// %s\n    %s,\n", c.Doc, pascal(c.Name))
	}
	b.WriteString("};\n\n// The errors by the numbers of their codes, from 1: a switch would be a larger table.\nconst errors = [_]Error{\n")
	for _, c := range abi.Codes {
		fmt.Fprintf(b, "    error.%s,\n", pascal(c.Name))
	}
	b.WriteString(zigErrors)
	b.WriteString("/// The stable names of the codes, in the order of their numbers, each followed by NUL: a\n/// table of slices would be twice as large.\npub const code_names = \"ok\\x00\" ++\n")
	for i, c := range abi.Codes {
		end := " ++"
		if i == len(abi.Codes)-1 {
			end = ";"
		}
		fmt.Fprintf(b, "    \"%s\\x00\"%s\n", c.Name, end)
	}
	b.WriteByte('\n')
}

const zigErrors = `};

/// How many codes this kit knows, without ok.
pub const known_codes: i32 = errors.len;

/// The error of a code. A code that this kit does not know becomes error.Failed.
pub fn errorOf(code: Code) Error {
    const index = @as(u32, @bitCast(~@backingInt(code)));
    return if (index < errors.len) errors[index] else error.Failed;
}

/// The code of an error, or null for an error that is not of the contract.
pub fn codeOf(err: anyerror) ?Code {
    for (errors, 1..) |e, number| if (e == err) return @fromBackingInt(-@as(i32, @intCast(number)));
    return null;
}

`

func zigEnums(b *bytes.Buffer) {
	b.WriteString("/// What a creature can read.\npub const Source = enum(i32) {\n")
	for _, s := range abi.Sources {
		fmt.Fprintf(b, "    /// %s\n    %s = %d,\n", s.Doc, zigName(s.Name), s.Source)
	}
	b.WriteString("};\n\n/// Why a creature is called. Later versions may add kinds.\npub const Kind = enum(i32) {\n")
	for _, k := range abi.Kinds {
		fmt.Fprintf(b, "    /// %s\n    %s = %d,\n", k.Doc, zigName(k.Name), k.Kind)
	}
	b.WriteString("    _,\n};\n\n/// The levels of log lines.\npub const Level = enum(i32) {\n")
	for i, name := range abi.LevelNames {
		fmt.Fprintf(b, "    %s = %d,\n", zigName(name), i)
	}
	b.WriteString("};\n\n/// The optional parts of the contract.\npub const Feature = enum(i32) {\n")
	for _, f := range abi.Features {
		fmt.Fprintf(b, "    /// %s\n    %s = %d,\n", f.Doc, f.Name, f.Feature)
	}
	b.WriteString("};\n\n")
}

// zigLimits writes the default limits that the fake host uses.
func zigLimits(b *bytes.Buffer) {
	b.WriteString("/// The default limits, for the fake host. An operator may set others.\npub const limits = struct {\n")
	defaults := limitDefaults()
	for _, l := range abi.LimitTable {
		if l.Unit != "time" {
			fmt.Fprintf(b, "    /// %s (%s)\n    pub const %s = %d;\n", l.Doc, l.Unit, l.Name, defaults[l.Name])
		}
	}
	b.WriteString("};\n\n")
}

// zigCalls writes the imports, and methods that take slices for the pairs of pointer
// and length.
func zigCalls(b *bytes.Buffer) {
	b.WriteString("/// The functions that a creature may import.\npub const imports = struct {\n")
	for _, f := range abi.Functions {
		var params []string
		for i, p := range f.Params {
			typ := typeName(p.Type)
			switch roleOf(f, i) {
			case input:
				typ = "[*]const u8"
			case outcome:
				typ = "[*]u8"
			}
			params = append(params, p.Name+": "+typ)
		}
		fmt.Fprintf(b, "    pub extern %q fn %s(%s) %s;\n", abi.ImportModule, f.Name, strings.Join(params, ", "), typeName(f.Result))
	}
	b.WriteString("};\n\n/// The imports with slices. The fake host has the same methods.\npub const Host = struct {\n")
	for n, f := range abi.Functions {
		if n > 0 {
			b.WriteByte('\n')
		}
		params, args := zigSlices(f)
		b.WriteString(wrap("    ///", f.Doc, 100))
		fmt.Fprintf(b, "    pub inline fn %s(%s) %s {\n        return imports.%s(%s);\n    }\n",
			zigCamel(f.Name), strings.Join(append([]string{"_: Host"}, params...), ", "), typeName(f.Result), f.Name, strings.Join(args, ", "))
	}
	b.WriteString("};\n")
}

// zigSlices returns the parameters of f with slices, and the arguments of its import.
func zigSlices(f abi.Function) (params, args []string) {
	for i := 0; i < len(f.Params); i++ {
		p := f.Params[i]
		role := roleOf(f, i)
		if role == number {
			params, args = append(params, p.Name+"_: "+typeName(p.Type)), append(args, p.Name+"_")
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(p.Name, "ptr"), "_")
		if name == "" {
			name = "bytes"
		}
		typ := "[]const u8"
		if role == outcome {
			typ = "[]u8"
		}
		params = append(params, name+"_: "+typ)
		args = append(args, name+"_.ptr", "@intCast("+name+"_.len)")
		i++
	}
	return params, args
}

// zigTools is sdk/zig/src/tools.zig.
func zigTools(specs []toolSpec) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\n", notice)
	b.WriteString(`//! The group tools. Each function returns the result of its tool as JSON. A field that is
//! null is left out.

const Turn = @import("turn.zig").Turn;
const json = @import("json.zig");

/// A channel by name or id, and the creature's alias for it.
pub const Wire = struct {
    channel: []const u8,
    alias: ?[]const u8 = null,
};
`)
	for _, t := range specs {
		b.WriteByte('\n')
		zigArgs(&b, t)
		fmt.Fprintf(&b, "pub fn %s(t: *Turn, args: %s) Turn.Error!json.Value {\n    return t.tool(%q, (try t.json(args)).raw);\n}\n",
			zigCamel(t.Name), pascal(t.Name), t.Name)
	}
	return b.Bytes()
}

func zigArgs(b *bytes.Buffer, t toolSpec) {
	fmt.Fprintf(b, "/// The arguments of %s.\npub const %s = struct {\n", zigCamel(t.Name), pascal(t.Name))
	for _, a := range t.Args {
		if a.Doc != "" {
			fmt.Fprintf(b, "    /// %s\n", a.Doc)
		}
		typ := zigArgType(a)
		if !a.Required {
			typ = "?" + typ + " = null"
		}
		fmt.Fprintf(b, "    %s: %s,\n", zigName(a.Name), typ)
	}
	b.WriteString("};\n\n" + wrap("///", t.Doc, 100))
}

func zigArgType(a toolArg) string {
	if len(a.Enum) > 0 {
		return "enum { " + strings.Join(a.Enum, ", ") + " }"
	}
	return map[string]string{
		"string": "[]const u8", "payload": "json.Payload", "object": "json.Value",
		"integer": "i64", "boolean": "bool", "wires": "[]const Wire",
	}[a.Type]
}

// zigName is a table name as an identifier of Zig.
func zigName(name string) string {
	if name == "error" {
		return "err" // as std.log does
	}
	if slices.Contains([]string{"switch", "return", "test", "align", "resume", "suspend"}, name) {
		return `@"` + name + `"`
	}
	return name
}

// pascal is a table name as Zig spells types and errors.
func pascal(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// lowerCamel is a table name as Zig spells functions.
func zigCamel(name string) string {
	name = pascal(name)
	return strings.ToLower(name[:1]) + name[1:]
}
