package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/recipes"
)

// testFlags holds the flags of the test command.
type testFlags struct {
	recipeFlags
	run     string
	format  string
	seed    uint64
	cache   cacheFlags
	verbose bool
}

func testCommand(s streams) *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test RECIPE",
		Short: "Run the tests of a recipe",
		Long: `test runs the test blocks of a recipe, each with its own engine and temporary session.
The blocks are in the recipe or in files beside it, whose names end in .test.hcl. A test
sends messages, moves its clock, and then evaluates assertions on the results. The exit
code is 1 if a test fails.`,
		Example: `  terrarium test examples/quickstart
  terrarium test examples/quickstart --run comments -o json`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.test(cmd, s, args[0]) },
	}
	f.recipeFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.run, "run", "", "run only the tests whose names match the regular expression `NAME`")
	fs.StringVarP(&f.format, "format", "o", "text", "format of results: text or json")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of ids and random numbers")
	f.cache.add(fs)
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "print more on standard error")
	return cmd
}

var errTestsFailed = errors.New("some tests failed")

func (f *testFlags) test(cmd *cobra.Command, s streams, path string) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	tests, err := f.loadTests(ctx, s, path)
	if err != nil {
		return err
	}
	o := terrarium.Options{Seed: &f.seed, Compiler: compiler(), Translations: translations(), Log: verbosity(s.err, f.verbose)}
	if o.CacheDir, o.CacheOptional, err = f.cache.resolve(); err != nil {
		return err
	}
	p := testPrinter{s: s, asJSON: f.format == "json"}
	for _, test := range tests {
		result, err := terrarium.RunTest(ctx, test, o)
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		if err == nil {
			err = p.result(result)
		}
		if err != nil {
			return failWith(exitFailed, err)
		}
	}
	if err := p.summary(); err != nil {
		return failWith(exitFailed, err)
	}
	if p.failed > 0 {
		return &exit{code: exitFailed, err: errTestsFailed, shown: true}
	}
	return nil
}

// loadTests loads the requested tests, and shows errors of the recipe.
func (f *testFlags) loadTests(ctx context.Context, s streams, path string) ([]*recipes.Test, error) {
	wanted, err := regexp.Compile(f.run)
	if err != nil {
		return nil, usage("--run %s: %v", f.run, err)
	}
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	all, diags := terrarium.LoadTests(ctx, path, o)
	if err := showFindings(s, diags); err != nil {
		return nil, err
	}
	var tests []*recipes.Test
	var names []string
	for _, test := range all {
		names = append(names, test.Name)
		if wanted.MatchString(test.Name) {
			tests = append(tests, test)
		}
	}
	switch {
	case len(all) == 0:
		return nil, usage(`%s has no tests: add a block such as test "name" { … }`, path)
	case len(tests) == 0:
		return nil, usage("--run %s: no test matches; the tests are %s", f.run, strings.Join(names, ", "))
	}
	return tests, nil
}

// testPrinter prints results as they arrive, and counts them.
type testPrinter struct {
	s              streams
	asJSON         bool
	passed, failed int
}

func (p *testPrinter) result(r terrarium.RecipeTest) error {
	if r.Passed {
		p.passed++
	} else {
		p.failed++
	}
	if p.asJSON {
		return p.line(struct {
			terrarium.RecipeTest
			Milliseconds int64 `json:"milliseconds"`
		}{r, r.Took.Milliseconds()})
	}
	word := "ok    "
	if !r.Passed {
		word = "FAILED"
	}
	if _, err := fmt.Fprintf(p.s.out, "%s %s (%s, %v)\n", word, printable(r.Name), r.Where, r.Took.Round(time.Millisecond)); err != nil {
		return err
	}
	if r.Error != "" {
		if _, err := fmt.Fprintf(p.s.out, "Error: %s\n", printable(r.Error)); err != nil {
			return err
		}
	}
	if len(r.Findings) == 0 {
		return nil
	}
	width, colour := terminal(p.s.out)
	return recipes.WriteText(p.s.out, r.Findings, width, colour)
}

// line prints a value as a line of JSON.
func (p *testPrinter) line(v any) error {
	enc := json.NewEncoder(p.s.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (p *testPrinter) summary() error {
	if p.asJSON {
		return p.line(map[string]int{"passed": p.passed, "failed": p.failed})
	}
	_, err := fmt.Fprintf(p.s.out, "%s passed, %d failed.\n", count(p.passed, "test"), p.failed)
	return err
}
