package prose

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	update = flag.Bool("update", false, "lower the counts of the baseline to what is found")
	show   = flag.String("show", "", "report all that is found below a folder or in a file")
)

const (
	root         = "../.."
	baselineFile = "testdata/baseline.txt"
	// tolerance is how far below its count in the baseline a unit may be, in per cent.
	tolerance = 10
)

// TestProse holds that no page and no package has more wording that is not used than
// the baseline allows.
func TestProse(t *testing.T) {
	rules, err := rules(filepath.Join(root, glossary))
	if err != nil {
		t.Fatal(err)
	}
	found, files, err := read(rules)
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Fatalf("only %d files were read", files)
	}
	if *show != "" {
		for _, unit := range slices.Sorted(maps.Keys(found)) {
			for _, f := range found[unit] {
				if f.file == *show || strings.HasPrefix(f.file, strings.TrimSuffix(*show, "/")+"/") || *show == "." {
					t.Error(f)
				}
			}
		}
	}
	text, err := os.ReadFile(baselineFile)
	if err != nil {
		t.Fatal(err)
	}
	problems, lowered := compare(found, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"))
	if *update {
		if err := os.WriteFile(baselineFile, []byte(strings.Join(lowered, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		problems = slices.DeleteFunc(problems, func(p string) bool { return strings.HasSuffix(p, lower) })
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// read goes through the pages and the Go files of the repository. What it finds is by
// unit: a page, or the folder of a package.
func read(rules []rule) (found map[string][]finding, files int, err error) {
	found = map[string][]finding{}
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch base := d.Name(); {
			case name == ".":
			case strings.HasPrefix(base, "."), base == "testdata", base == "target", base == "node_modules", base == "zig-out", name == "bin", name == "public":
				return fs.SkipDir
			}
			return nil
		}
		unit, reader := name, markdown
		switch path.Ext(name) {
		case ".md":
		case ".go":
			unit, reader = path.Dir(name), golang
		default:
			return nil
		}
		paragraphs, err := reader(filepath.Join(root, name))
		if err != nil {
			return err
		}
		files++
		if f := check(name, paragraphs, rules); len(f) > 0 {
			found[unit] = append(found[unit], f...)
		}
		return nil
	})
	return found, files, err
}

// lower ends a problem that -update solves.
const lower = "go test ./internal/prose -update lowers the baseline"

// compare holds what is found against the lines of the baseline: a count and a unit. It
// returns what is wrong, and the baseline with lower counts.
func compare(found map[string][]finding, lines []string) (problems, lowered []string) {
	allowed := map[string]int{}
	for _, line := range lines {
		if strings.HasPrefix(line, "#") || line == "" {
			lowered = append(lowered, line)
			continue
		}
		fields := strings.Fields(line)
		n := 0
		if len(fields) == 2 {
			n, _ = strconv.Atoi(fields[0])
		}
		if n <= 0 {
			problems = append(problems, fmt.Sprintf("%q is not a count and a page or package", line))
			lowered = append(lowered, line)
			continue
		}
		unit := fields[1]
		allowed[unit] = n
		is := len(found[unit])
		if is*100 < n*(100-tolerance) {
			problems = append(problems, fmt.Sprintf("%s has %d, below the %d of its baseline: %s", unit, is, n, lower))
		}
		if is > 0 {
			lowered = append(lowered, fmt.Sprintf("%4d %s", min(n, is), unit))
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(found)) {
		n, is := allowed[unit], found[unit]
		if len(is) <= n {
			continue
		}
		if n > 0 {
			problems = append(problems, fmt.Sprintf("%s has %d, above the %d of its baseline; all of them follow", unit, len(is), n))
		}
		for _, f := range is {
			problems = append(problems, f.String())
		}
	}
	return problems, lowered
}
