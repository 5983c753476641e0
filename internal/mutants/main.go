// Command mutants makes programs that are wrong by one operator, and says which of them the
// tests do not notice.
//
//	go run ./internal/mutants -n 20 ./host ./engine
//
// One build holds all mutants that are drawn: each operator is replaced by a choice between
// the right and the wrong one, and an environment variable chooses. Every test runs once
// without a mutant, which tells what it reaches and how long it takes. A mutant is then
// tested by the tests that reach it, the quickest first, until one fails: by those of its
// package and by those of the suites that -suites names. Files in the working tree are not
// changed: the mutants are an overlay of the build. The same seed draws the same mutants.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	count := flags.Int("n", 20, "how many mutants to test")
	seed := flags.Uint64("seed", 1, "draws the mutants")
	suites := flags.String("suites", "./conformance/hosts ./conformance/creatures ./conformance", "packages that also test every mutant")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name packages with operators, such as ./host ./engine")
	}
	all, err := sitesOf(ctx, flags.Args())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d operators; seed %d\n", len(all), *seed)
	dir, err := os.MkdirTemp("", "terrarium-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	order := rand.New(rand.NewPCG(*seed, 0)).Perm(len(all))
	r := &runner{dir: dir, out: out}
	for _, i := range order[:min(*count, len(order))] {
		r.sites = append(r.sites, all[i])
	}
	for i, s := range r.sites {
		s.id = i + 1
	}
	if err := r.build(ctx, flags.Args(), strings.Fields(*suites)); err != nil {
		return err
	}
	return r.run(ctx)
}
