package guestbuild

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sumFile records, for every guest that is kept, a sum of its inputs and one
// of the resulting module.
const sumFile = "plugins/guests.sum"

// Sum holds the recorded sums of a prebuilt guest, in lower-case hex.
type Sum struct {
	Inputs string
	Module string
}

// ModuleSum returns the sum of a module.
func ModuleSum(module []byte) string {
	sum := sha256.Sum256(module)
	return hex.EncodeToString(sum[:])
}

// InputSum returns the sum of all inputs of the guest: the commands and the
// files, by name and content.
func (g Guest) InputSum(root string) (string, error) {
	h := sha256.New()
	for _, c := range g.commands(g, "OUT") {
		fmt.Fprintf(h, "command %q %q\n", c.args, c.env)
	}
	for _, pattern := range g.Inputs {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return "", err
		}
		slices.Sort(paths)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			if err := addFile(h, root, path); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func addFile(h io.Writer, root, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	// Working copies with other line endings are the same sources.
	content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	_, err = fmt.Fprintf(h, "file %s %d\n%s\n", filepath.ToSlash(name), len(content), content)
	return err
}

// ReadSums returns the recorded sums, by the guest's name.
func ReadSums(root string) (map[string]Sum, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(sumFile)))
	if err != nil {
		return nil, err
	}
	sums := map[string]Sum{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		parts := strings.Fields(lines.Text())
		if len(parts) != 3 {
			return nil, fmt.Errorf("%s: the line %q is not name, inputs, module; run make guests", sumFile, lines.Text())
		}
		sums[parts[0]] = Sum{parts[1], parts[2]}
	}
	return sums, lines.Err()
}

// Write builds every guest that is kept and writes the modules and their sums.
func Write(root string, build func(Guest) ([]byte, error)) error {
	var record strings.Builder
	for _, g := range kept() {
		module, err := build(g)
		if err != nil {
			return err
		}
		inputs, err := g.InputSum(root)
		if err != nil {
			return err
		}
		if err := os.WriteFile(g.Path(root), module, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&record, "%s %s %s\n", g.Name, inputs, ModuleSum(module))
	}
	return os.WriteFile(filepath.Join(root, filepath.FromSlash(sumFile)), []byte(record.String()), 0o644)
}

// CheckSums returns an error that names every kept guest whose sources or
// module differ from the record. It needs no toolchain.
func CheckSums(root string) error {
	sums, err := ReadSums(root)
	if err != nil {
		return err
	}
	var stale error
	for _, g := range kept() {
		inputs, err := g.InputSum(root)
		if err != nil {
			return err
		}
		module, err := os.ReadFile(g.Path(root))
		if err != nil {
			return err
		}
		switch sum := sums[g.Name]; {
		case sum.Inputs != inputs:
			stale = errors.Join(stale, fmt.Errorf("%s is stale: its sources have changed since it was built; run make guests", g.Name))
		case sum.Module != ModuleSum(module):
			stale = errors.Join(stale, fmt.Errorf("%s is not the module that was built from its sources; run make guests", g.Name))
		}
	}
	return stale
}

// CheckBytes builds every kept guest again and returns an error that names
// those that differ.
func CheckBytes(root string, build func(Guest) ([]byte, error)) error {
	var stale error
	for _, g := range kept() {
		have, err := os.ReadFile(g.Path(root))
		if err != nil {
			return err
		}
		built, err := build(g)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, built) {
			stale = errors.Join(stale, fmt.Errorf("%s is stale: building it again gives other bytes (%d instead of %d); run make guests", g.Name, len(built), len(have)))
		}
	}
	return stale
}
