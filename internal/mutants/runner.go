package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// runner tests mutants with the test programs of packages.
type runner struct {
	dir   string // for what is built
	out   io.Writer
	sites []*site
	tests []*test
	unfit int // mutants that do not compile
	lame  int // tests that fail without a mutant
}

// test is a test of a package.
type test struct {
	program string
	dir     string // of the package
	name    string
	suite   bool // it does not belong to a package with mutants
	pkg     string
	took    time.Duration // without a mutant
	reaches map[int]bool  // mutants by id
}

// build makes the test programs of packages and suites.
func (r *runner) build(ctx context.Context, pkgs, suites []string) error {
	for i, pkg := range append(slices.Clone(pkgs), suites...) {
		dir, err := filepath.Abs(pkg)
		if err != nil {
			return err
		}
		program := filepath.Join(r.dir, fmt.Sprintf("%d.test", i))
		if err := r.compile(ctx, program, pkg); err != nil {
			return err
		}
		list, err := r.command(ctx, program, dir, "-test.list", ".").Output()
		if err != nil {
			return fmt.Errorf("%s: its tests cannot be listed: %w", pkg, err)
		}
		for _, name := range strings.Fields(string(list)) {
			path := strings.TrimPrefix(filepath.ToSlash(filepath.Clean(pkg)), "./")
			r.tests = append(r.tests, &test{program: program, dir: dir, name: name, suite: i >= len(pkgs), pkg: path})
		}
	}
	return nil
}

// compile makes one test program. Sites whose lines do not compile are left out, since the
// wrong operator may not fit its types.
func (r *runner) compile(ctx context.Context, program, pkg string) error {
	for {
		overlay, replace, err := r.overlay()
		if err != nil {
			return err
		}
		output, failed := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, pkg).CombinedOutput()
		if failed == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		wrong, err := placesIn(string(output))
		if err != nil {
			return err
		}
		before := len(r.sites)
		r.sites = slices.DeleteFunc(r.sites, func(s *site) bool { return wrong[place{replace[s.file], s.line}] })
		if len(r.sites) == before {
			return fmt.Errorf("go test -c %s: %w\n%s", pkg, failed, output)
		}
		r.unfit += before - len(r.sites)
	}
}

// place is a line of a file, whose path is absolute.
type place struct {
	file string
	line int
}

var placeForm = regexp.MustCompile(`(?m)^(.+?\.go):(\d+):`)

// placesIn returns the places that a compiler names. Its paths are those of the files that it
// reads, from the current folder.
func placesIn(output string) (map[place]bool, error) {
	out := map[place]bool{}
	for _, m := range placeForm.FindAllStringSubmatch(output, -1) {
		file, err := filepath.Abs(m[1])
		if err != nil {
			return nil, err
		}
		line, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, err
		}
		out[place{file, line}] = true
	}
	return out, nil
}

// overlay writes the files of the mutants. It returns the path of the list of them, and
// the list: what is written instead of each file.
func (r *runner) overlay() (path string, replace map[string]string, err error) {
	byFile := map[string][]*site{}
	last := 0
	for _, s := range r.sites {
		byFile[s.file] = append(byFile[s.file], s)
		last = max(last, s.id)
	}
	replace = map[string]string{}
	add := func(path, text string) error {
		if _, known := replace[path]; known {
			return nil
		}
		replace[path] = filepath.Join(r.dir, fmt.Sprintf("%d.go", len(replace)))
		return os.WriteFile(replace[path], []byte(text), 0o600)
	}
	for file, sites := range byFile {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", nil, err
		}
		head, err := parser.ParseFile(token.NewFileSet(), file, text, parser.PackageClauseOnly)
		if err != nil {
			return "", nil, err
		}
		err = errors.Join(add(file, mutate(string(text), sites)), add(filepath.Join(filepath.Dir(file), "mutants_choice.go"), fmt.Sprintf(choice, head.Name.Name, last+1)))
		if err != nil {
			return "", nil, err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(r.dir, "overlay.json")
	return path, replace, os.WriteFile(path, list, 0o600)
}

// measure runs each test without a mutant. Tests that fail are left out: what they assert,
// such as allocations, may not hold in a program that chooses its operators.
func (r *runner) measure(ctx context.Context) error {
	var sound []*test
	for _, t := range r.tests {
		reached := filepath.Join(r.dir, "reached.txt")
		if err := os.Remove(reached); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		began := time.Now()
		failed, err := r.fails(ctx, t, 10*time.Minute, envReached+"="+reached)
		if err != nil {
			return err
		}
		if t.took = time.Since(began); failed != "" {
			r.lame++
			continue
		}
		text, err := os.ReadFile(reached)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		t.reaches = map[int]bool{}
		for _, word := range strings.Fields(string(text)) {
			if id, err := strconv.Atoi(word); err == nil {
				t.reaches[id] = true
			}
		}
		sound = append(sound, t)
	}
	slices.SortStableFunc(sound, func(a, b *test) int { return cmp.Compare(a.took, b.took) })
	r.tests = sound
	return nil
}

// fails runs a test and returns how it failed, or "".
func (r *runner) fails(ctx context.Context, t *test, limit time.Duration, env string) (string, error) {
	const slack = 30 * time.Second // for a test that does not end at its limit
	ctx, cancel := context.WithTimeout(ctx, limit+slack)
	defer cancel()
	cmd := r.command(ctx, t.program, t.dir, "-test.run", "^"+t.name+"$", "-test.failfast", "-test.timeout", limit.String())
	cmd.Env = append(os.Environ(), env)
	output, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil && cmp.Or(context.Cause(ctx), ctx.Err()) != context.DeadlineExceeded:
		return "", ctx.Err()
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // a child that outlives a test that passed is no failure
		return "", nil
	case ctx.Err() != nil || bytes.Contains(output, []byte("test timed out after")):
		return "does not end", nil
	case errors.As(err, &ended):
		return "fails", nil
	}
	return "", err
}

func (r *runner) command(ctx context.Context, program, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	return cmd
}

// run tests the mutants one after the other.
func (r *runner) run(ctx context.Context) error {
	fmt.Fprintf(r.out, "%d mutants; %d others do not compile\n", len(r.sites), r.unfit)
	if err := r.measure(ctx); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%d tests; %d others fail without a mutant\n", len(r.tests), r.lame)
	byTests, bySuites, caught := 0, 0, 0
	for _, s := range r.sites {
		own, reaching, err := r.catch(ctx, s, false)
		if err != nil {
			return err
		}
		suite, more, err := r.catch(ctx, s, true)
		if err != nil {
			return err
		}
		if own != "" {
			byTests++
		}
		if suite != "" {
			bySuites++
		}
		if own == "" && suite == "" {
			fmt.Fprintf(r.out, "ESCAPED  %v (%d tests reach it)\n", s, reaching+more)
			continue
		}
		caught++
		fmt.Fprintf(r.out, "caught   %v (%s)\n", s, strings.Join(slices.DeleteFunc([]string{own, suite}, func(x string) bool { return x == "" }), "; "))
	}
	_, err := fmt.Fprintf(r.out, "%d of %d mutants were caught: %d by the tests of the package, %d by the suites.\n", caught, len(r.sites), byTests, bySuites)
	return err
}

// catch returns the test that notices a mutant, or "", and how many tests reach it. They
// are those of its package, or those of the suites.
func (r *runner) catch(ctx context.Context, s *site, suite bool) (by string, reaching int, err error) {
	for _, t := range r.tests {
		if t.suite != suite || !t.reaches[s.id] {
			continue
		}
		reaching++
		const least, most = 20 * time.Second, 10 // a slow machine is no failure
		how, err := r.fails(ctx, t, least+most*t.took, envMutant+"="+strconv.Itoa(s.id))
		if err != nil {
			return "", reaching, err
		}
		if how != "" {
			return fmt.Sprintf("%s %s %s", t.pkg, t.name, how), reaching, nil
		}
	}
	return "", reaching, nil
}
