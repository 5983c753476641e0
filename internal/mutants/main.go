// Command mutants makes programs that are wrong by one operator, and says which of them the
// tests do not notice.
//
//	go run ./internal/mutants -n 20 ./host ./engine
//
// Each mutant is tested by the tests of its package and then by the suites that -suites
// names, until one fails. First they all must pass on the program as it is, in half of the
// time that a mutant has, so that a slow machine is not taken for a good test. Files in the working tree are not changed: the mutant is an
// overlay of the build. The same seed draws the same mutants.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
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
	limit := flags.Duration("timeout", 10*time.Minute, "how long the tests of one package may take")
	suites := flags.String("suites", "./conformance/hosts ./conformance/creatures ./conformance", "packages that also test every mutant")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var sites []site
	for _, dir := range flags.Args() {
		found, err := sitesOf(dir)
		if err != nil {
			return err
		}
		sites = append(sites, found...)
	}
	if len(sites) == 0 {
		return errors.New("name packages with operators, such as ./host ./engine")
	}
	dir, err := os.MkdirTemp("", "terrarium-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(out, "%d operators; seed %d\n", len(sites), *seed)
	for _, pkg := range append(flags.Args(), strings.Fields(*suites)...) {
		if output, err := tests(ctx, *limit/2, pkg).CombinedOutput(); err != nil {
			return fmt.Errorf("%s fails without a mutant, or needs more than half of -timeout: %w\n%s", pkg, err, output)
		}
	}
	caught, tested := 0, 0
	for _, i := range rand.New(rand.NewPCG(*seed, 0)).Perm(len(sites)) {
		if tested == *count {
			break
		}
		s := &sites[i]
		by, err := s.test(ctx, dir, strings.Fields(*suites), *limit)
		switch {
		case errors.Is(err, errNotBuilt):
			continue
		case err != nil:
			return err
		case by == "":
			fmt.Fprintf(out, "ESCAPED  %v\n", s)
		default:
			caught++
			fmt.Fprintf(out, "caught   %v (%s)\n", s, by)
		}
		tested++
	}
	_, err = fmt.Fprintf(out, "%d of %d mutants were caught.\n", caught, tested)
	return err
}

// errNotBuilt says that the mutant is no program: its types do not fit.
var errNotBuilt = errors.New("it does not compile")

// test returns the package whose tests notice the mutant, or "".
func (s *site) test(ctx context.Context, dir string, suites []string, limit time.Duration) (by string, err error) {
	text, err := os.ReadFile(s.file)
	if err != nil {
		return "", err
	}
	mutated, err := s.mutate(text)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(s.file)
	if err != nil {
		return "", err
	}
	replacement, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	if err == nil {
		err = errors.Join(os.WriteFile(replacement, []byte(mutated), 0o600), os.WriteFile(overlay, list, 0o600))
	}
	if err != nil {
		return "", err
	}
	own := "./" + filepath.ToSlash(filepath.Dir(s.file))
	if output, err := command(ctx, limit, "build", "-overlay", overlay, own).CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if !bytes.Contains(output, []byte(filepath.Base(s.file))) && !bytes.Contains(output, []byte("mutant.go")) {
			return "", fmt.Errorf("%v: go build: %w\n%s", s, err, output)
		}
		return "", errNotBuilt
	}
	for _, pkg := range append([]string{own}, suites...) {
		output, err := tests(ctx, limit, pkg, "-overlay", overlay).CombinedOutput()
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		switch {
		case err != nil && bytes.Contains(output, []byte("test timed out after")):
			return pkg + ", which did not end", nil
		case err != nil:
			return pkg, nil
		}
	}
	return "", nil
}

// tests runs the tests of a package.
func tests(ctx context.Context, limit time.Duration, pkg string, flags ...string) *exec.Cmd {
	args := append([]string{"test", "-vet=off", "-count=1", "-failfast", "-timeout", limit.String()}, flags...)
	return command(ctx, limit, append(args, pkg)...)
}

// command runs go. It ends some time after the limit at the latest: the tests end themselves
// at the limit, and building takes time as well.
func command(ctx context.Context, limit time.Duration, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = limit
	return cmd
}
