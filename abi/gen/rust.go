package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// rustRaw is sdk/rust/src/raw.rs.
func rustRaw() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `// %s

//! The contract as declarations: its numbers, its functions, and the trait [`+"`Host`"+`].
//!
//! [`+"`Turn`](crate::Turn)"+` is the convenient form of the same functions.

/// The version of the contract that this kit implements.
pub const ABI_VERSION: i32 = %d;

/// The handle that stands for every channel that the creature may send on.
pub const ALL_CHANNELS: i32 = %d;
`, notice, abi.Version, abi.AllChannels)
	rustCodes(&b)
	rustEnums(&b)
	rustLimits(&b)
	rustHost(&b)
	rustImports(&b)
	return b.Bytes()
}

func rustCodes(b *bytes.Buffer) {
	b.WriteString(`
/// A code of an error. A host may return codes that this kit does not know.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

impl Code {
`)
	for _, c := range abi.Codes {
		fmt.Fprintf(b, "    /// %s\n    pub const %s: Code = Code(%d);\n", sentence(c.Doc), upper(c.Name), c.Code)
	}
	b.WriteString("\n    /// Returns the stable name, for example `not_found`; `unknown` for a code that this kit does not know.\n")
	b.WriteString("    pub fn name(self) -> &'static str {\n        match self.0 {\n")
	for _, c := range abi.Codes {
		fmt.Fprintf(b, "            %d => %q,\n", c.Code, c.Name)
	}
	b.WriteString("            _ => \"unknown\",\n        }\n    }\n}\n")
}

func rustEnums(b *bytes.Buffer) {
	enum := func(doc, name, attributes string) {
		fmt.Fprintf(b, "\n/// %s\n%s#[repr(i32)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\npub enum %s {\n", doc, attributes, name)
	}
	variant := func(name, doc string, number int32) {
		fmt.Fprintf(b, "    /// %s\n    %s = %d,\n", doc, name, number)
	}
	const open = "#[non_exhaustive]\n"
	enum("Something that a creature can read.", "Source", open)
	for _, s := range abi.Sources {
		name := rustCamel(s.Name)
		if name == "Self" { // a keyword
			name = "SelfName"
		}
		variant(name, sentence(s.Doc), int32(s.Source))
	}
	b.WriteString("}\n")
	enum("Why a creature is called.", "Kind", open)
	for _, k := range abi.Kinds {
		variant(rustCamel(k.Name), sentence(k.Doc), int32(k.Kind))
	}
	b.WriteString("}\n\nimpl Kind {\n    /// Returns the kind with this number, if this kit knows it.\n    pub fn from_number(number: i32) -> Option<Kind> {\n        Some(match number {\n")
	for _, k := range abi.Kinds {
		fmt.Fprintf(b, "            %d => Kind::%s,\n", k.Kind, rustCamel(k.Name))
	}
	b.WriteString("            _ => return None,\n        })\n    }\n\n    /// Returns the name, for example `message`.\n    pub fn name(self) -> &'static str {\n        match self {\n")
	for _, k := range abi.Kinds {
		fmt.Fprintf(b, "            Kind::%s => %q,\n", rustCamel(k.Name), k.Name)
	}
	b.WriteString("        }\n    }\n}\n")
	enum("The level of a log line.", "Level", "")
	for i, name := range abi.LevelNames {
		variant(rustCamel(name), "Lines at the level `"+name+"`.", int32(i))
	}
	b.WriteString("}\n")
	enum("An optional part of the contract.", "Feature", open)
	for _, f := range abi.Features {
		variant(rustCamel(f.Name), sentence(f.Doc), int32(f.Feature))
	}
	b.WriteString("}\n")
}

// rustLimits writes the defaults of the limits, which the fake host enforces.
func rustLimits(b *bytes.Buffer) {
	b.WriteString("\n/// The limits of one creature, by default. An operator may set others.\npub mod limits {\n")
	defaults := limitDefaults()
	for _, l := range abi.LimitTable {
		fmt.Fprintf(b, "    /// %s, in %s.\n    pub const %s: u64 = %d;\n", strings.TrimSuffix(sentence(l.Doc), "."), rustUnit(l.Unit), upper(l.Name), defaults[l.Name])
	}
	b.WriteString("}\n")
}

// rustUnit is the unit of a limit as its constant counts it.
func rustUnit(unit string) string {
	if unit == "time" {
		return "nanoseconds"
	}
	return unit
}

// rustHost writes the trait with slices instead of pointers.
func rustHost(b *bytes.Buffer) {
	b.WriteString(`
/// The functions of the contract, with slices instead of pointers.
///
/// A result of 0 or more is success, a negative one is the number of a [` + "`Code`" + `].
#[allow(clippy::too_many_arguments)]
pub trait Host {
`)
	for _, f := range abi.Functions {
		fmt.Fprintf(b, "    /// %s\n    fn %s;\n", rustDoc(f.Doc), rustSignature(f))
	}
	b.WriteString("}\n")
}

// rustImports writes the imports and the host that calls them, for wasm32.
func rustImports(b *bytes.Buffer) {
	fmt.Fprintf(b, `
/// The host that runs the module.
#[cfg(target_arch = "wasm32")]
#[derive(Debug)]
pub struct Wasm;

#[cfg(target_arch = "wasm32")]
mod imports {
    #[link(wasm_import_module = %q)]
    extern "C" {
`, abi.ImportModule)
	for _, f := range abi.Functions {
		var params []string
		for i, p := range f.Params {
			typ := rustType(p.Type)
			switch roleOf(f, i) {
			case input:
				typ = "*const u8"
			case outcome:
				typ = "*mut u8"
			}
			params = append(params, p.Name+": "+typ)
		}
		fmt.Fprintf(b, "        pub fn %s(%s) -> %s;\n", f.Name, strings.Join(params, ", "), rustType(f.Result))
	}
	b.WriteString("    }\n}\n\n// The host only reads and writes the ranges that it gets, and these are slices.\n#[cfg(target_arch = \"wasm32\")]\nimpl Host for Wasm {\n")
	for _, f := range abi.Functions {
		fmt.Fprintf(b, "    #[inline]\n    fn %s {\n        unsafe { imports::%s(%s) }\n    }\n", rustSignature(f), f.Name, rustArguments(f))
	}
	b.WriteString("}\n")
}

// rustSignature is a method of the trait Host, without its body.
func rustSignature(f abi.Function) string {
	params := []string{"&mut self"}
	for i := 0; i < len(f.Params); i++ {
		name := f.Params[i].Name
		switch roleOf(f, i) {
		case input:
			params = append(params, rustSlice(name)+": &[u8]")
			i++ // the length
		case outcome:
			params = append(params, rustSlice(name)+": &mut [u8]")
			i++
		default:
			params = append(params, name+": "+rustType(f.Params[i].Type))
		}
	}
	return fmt.Sprintf("%s(%s) -> %s", f.Name, strings.Join(params, ", "), rustType(f.Result))
}

// rustArguments are those of the import that belongs to a method.
func rustArguments(f abi.Function) string {
	var args []string
	for i := 0; i < len(f.Params); i++ {
		slice := rustSlice(f.Params[i].Name)
		switch roleOf(f, i) {
		case input:
			args = append(args, slice+".as_ptr()", slice+".len() as i32")
			i++
		case outcome:
			args = append(args, slice+".as_mut_ptr()", slice+".len() as i32")
			i++
		default:
			args = append(args, f.Params[i].Name)
		}
	}
	return strings.Join(args, ", ")
}

// rustSlice names the slice of a pointer and its length: key for key_ptr.
func rustSlice(pointer string) string {
	if pointer == "ptr" {
		return "bytes"
	}
	return strings.TrimSuffix(pointer, "_ptr")
}

func rustType(t abi.ValueType) string { return typeName(t) }

// rustCamel is a table name as Rust spells a type or a variant.
func rustCamel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// sentence makes a clause of the tables the text of a doc comment.
func sentence(clause string) string {
	if clause == "" {
		return ""
	}
	return rustDoc(strings.ToUpper(clause[:1])+clause[1:]) + "."
}

// rustDoc puts what rustdoc would read as a link or as HTML into plain text.
func rustDoc(text string) string {
	return strings.NewReplacer("[", `\[`, "]", `\]`, "<", `\<`).Replace(text)
}
