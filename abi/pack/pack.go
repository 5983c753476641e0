// Package pack puts a manifest into a finished module, for toolchains that
// cannot write custom sections, and takes sections out of one. It reads the
// frame of the binary format only: sections are kept byte for byte.
package pack

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// preamble starts every core module: "\0asm", version 1.
const preamble = "\x00asm\x01\x00\x00\x00"

const customSection = 0

// Manifest returns a copy of module with manifest, a JSON object, as its only
// section [abi.ManifestSection]. White space in the JSON is left out. If manifest has no
// member capabilities, that of the module's present manifest is kept: an interpreter imports
// functions that its scripts need not use. The same input always gives the same bytes.
//
// The error has the code [abi.InvalidArgument] if module is not a module or
// manifest is not a manifest with a name, and [abi.TooLarge] if it is larger
// than [abi.MaxManifestBytes].
func Manifest(module, manifest []byte) ([]byte, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, manifest); err != nil {
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "pack", Message: "the manifest is not JSON", Err: err,
			Remedy: "see the manifest in abi/README.md"}
	}
	m, err := abi.ParseManifest(compact.Bytes())
	if err != nil {
		return nil, inPack(err)
	}
	if m.Name == "" {
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "pack", Message: "the manifest has no name",
			Remedy: `give it a member "name"`}
	}
	text := compact.Bytes()
	if former, err := capabilities(module); err != nil {
		return nil, err
	} else if m.Capabilities == nil && former != nil {
		text = append(append(append(text[:len(text)-1], `,"capabilities":`...), former...), '}')
	}
	return Replace(module, abi.ManifestSection, text)
}

// capabilities returns that member of the manifest of a module, as JSON; nil without it.
func capabilities(module []byte) ([]byte, error) {
	sections, err := split(module)
	if err != nil {
		return nil, err
	}
	for _, s := range sections {
		if s.name != abi.ManifestSection {
			continue
		}
		if m, err := abi.ParseManifest(s.content); err == nil && m.Capabilities != nil {
			return json.Marshal(m.Capabilities)
		}
	}
	return nil, nil
}

// inPack sets the operation of an error.
func inPack(err error) error {
	var e *abi.Error
	if errors.As(err, &e) {
		named := *e
		named.Op = "pack"
		return &named
	}
	return err
}

// Replace returns a copy of module without its custom sections of that name,
// and with one such section at its end.
func Replace(module []byte, name string, content []byte) ([]byte, error) {
	sections, err := split(module)
	if err != nil {
		return nil, err
	}
	out := slices.Grow([]byte(preamble), len(module)+len(name)+len(content)+2*binary.MaxVarintLen32+1)
	for _, s := range sections {
		if s.custom && s.name == name {
			continue
		}
		out = append(out, s.whole...)
	}
	body := binary.AppendUvarint(nil, uint64(len(name)))
	body = append(body, name...)
	body = append(body, content...)
	out = append(out, customSection)
	out = binary.AppendUvarint(out, uint64(len(body)))
	return append(out, body...), nil
}

// section is one section of a module.
type section struct {
	whole  []byte // with its header
	custom bool

	// Of a custom section:
	name    string
	content []byte
}

func split(module []byte) ([]section, error) {
	if !bytes.HasPrefix(module, []byte(preamble)) {
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "pack", Message: "it is not a core WebAssembly module",
			Remedy: "use a .wasm file written by a compiler or wat2wasm"}
	}
	var sections []section
	for rest := module[len(preamble):]; len(rest) > 0; {
		body, after, ok := prefixed(rest[1:])
		if !ok {
			return nil, truncated(len(module) - len(rest))
		}
		s := section{whole: rest[:len(rest)-len(after)], custom: rest[0] == customSection}
		if s.custom {
			name, content, ok := prefixed(body)
			if !ok {
				return nil, truncated(len(module) - len(rest))
			}
			s.name, s.content = string(name), content
		}
		sections = append(sections, s)
		rest = after
	}
	return sections, nil
}

// prefixed reads bytes preceded by their length from the front of b.
func prefixed(b []byte) (content, rest []byte, ok bool) {
	n, width := binary.Uvarint(b)
	if width <= 0 || width > binary.MaxVarintLen32 || n > uint64(len(b)-width) {
		return nil, nil, false
	}
	b = b[width:]
	return b[:n:n], b[n:], true
}

func truncated(at int) error {
	return &abi.Error{Code: abi.InvalidArgument, Op: "pack", Message: fmt.Sprintf("the section at byte %#x is truncated", at),
		Remedy: "build the module again, or copy it again"}
}
