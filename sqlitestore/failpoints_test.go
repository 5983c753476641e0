package sqlitestore

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
)

// TestFailpointsAreReached runs the program of TestKilled undisturbed, forks and exports a
// session, and rebuilds a damaged catalogue. Together these must pass every failpoint, except
// those after a power loss, which TestLooseCut passes.
func TestFailpointsAreReached(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	oldDirectory(t, dir, journal.Normal)
	defer losevfs.Mount(dir, 0).Unmount() // nothing here depends on syncs
	var mu sync.Mutex
	reached := map[failpoint.Point]bool{}
	options := smallChunks(func(p failpoint.Point, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		reached[p] = true
		return nil
	})
	seed := seeded.For(t.Name())
	for life := uint64(0); life < 12 && len(reached) < int(failpoint.Count)-len(rebuilds)-len(forks)-len(exports)-len(losses); life++ {
		p := &program{ctx: t.Context(), random: rand.New(rand.NewPCG(seed, life)), durability: journal.Normal, tell: func(progress) {}}
		if err := p.start(dir, options); err != nil {
			t.Fatal(err)
		}
		if err := p.run(40); err != nil {
			t.Error(err)
		}
		if err := p.d.Close(); err != nil {
			t.Error(err)
		}
	}
	a := &errand{Word: "fork", Session: liveSessions(t, dir)[0], To: filepath.Join(t.TempDir(), "fork")}
	if err := a.fork(t.Context(), dir, options.hooks); err != nil {
		t.Error(err)
	}
	a.Word, a.To = "export", filepath.Join(t.TempDir(), "alone.db")
	if err := a.fork(t.Context(), dir, options.hooks); err != nil {
		t.Error(err)
	}
	damageCatalog(t, dir)
	if _, err := rebuildWith(t.Context(), dir, options.hooks); err != nil {
		t.Error(err)
	}
	for p := range failpoint.Count {
		if !reached[p] && !slices.Contains(losses, p) {
			t.Errorf("%s has not been reached; seed %d", p, seed)
		}
	}
}

// TestFailpointsAreNamed compares the list of failpoints with the source. Each failpoint has
// its own name, and is passed in at least one place.
func TestFailpointsAreNamed(t *testing.T) {
	names := map[string]bool{"": true}
	for p := range failpoint.Count {
		if names[p.String()] {
			t.Errorf("failpoint %d has the name %q, which is empty or that of another one", p, p)
		}
		names[p.String()] = true
	}
	declared, passed := map[string]bool{}, map[string]bool{}
	paths, err := filepath.Glob("*.go")
	inner, innerErr := filepath.Glob("internal/*/*.go")
	if err := errors.Join(err, innerErr); err != nil {
		t.Fatal(err)
	}
	paths = append(paths, inner...)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if path == filepath.Join("internal", "failpoint", "failpoint.go") {
			points(file, declared)
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if in, ok := s.X.(*ast.Ident); ok && in.Name == "failpoint" {
					passed[s.Sel.Name] = true
				}
			}
			return true
		})
	}
	if len(declared) != int(failpoint.Count) {
		t.Errorf("%d failpoints are declared, want %d", len(declared), failpoint.Count)
	}
	for name := range declared {
		if !passed[name] {
			t.Errorf("nothing passes %s", name)
		}
	}
}

// points finds the failpoints that a file declares.
func points(file *ast.File, declared map[string]bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for _, id := range v.Names {
				if id.IsExported() && id.Name != "Count" {
					declared[id.Name] = true
				}
			}
		}
		return true
	})
}
