package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/conformance/creatures"
	"github.com/seed47132306/terrarium/conformance/hosts"
	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/conformance/requirements"
	"github.com/seed47132306/terrarium/host"
)

// exitNonconforming is the exit code of a suite that found a breach of the contract.
const exitNonconforming = 4

var errDoesNotConform = errors.New("it does not conform")

func conformanceCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Test whether creatures, hosts and stores follow their contracts",
		Long: `conformance runs the suites that creatures, hosts of creatures, and session stores must
pass. The cases are part of the program. Each numbered rule of a contract is a
requirement, and the report says which of them are met.

Exit codes: 0 the subject conforms; 4 it does not; 2 the command line, a file of cases or
a baseline is not valid.`,
		Example: `  terrarium conformance creature build/spotter.wasm
  terrarium conformance host --adapter "python3 host.py" --expected baseline.yaml`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(conformanceCreatureCommand(s), conformanceHostCommand(s), conformanceStoreCommand(s), conformanceAdapterCommand(s))
	return cmd
}

// suiteFlags holds the flags that all suites have.
type suiteFlags struct {
	checks   []string
	expected string
	format   string
	list     bool
	files    map[string]*string // by format
	set      string             // of requirements; prepare sets it
	cases    bool               // the author's own cases are among the checks
	own      bool               // files with such cases are given
}

var reportFormats = []string{"text", "json", "junit", "html", "badge"}

func (f *suiteFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&f.checks, "check", nil, "run only the checks whose name matches `PATTERN`, in which * stands for any text without a slash; may be repeated")
	fs.StringVar(&f.expected, "expected", "", "`FILE` in YAML that lists the failures that are expected, each with a reason; one that does not occur is an error")
	fs.StringVarP(&f.format, "format", "o", "text", "`FORMAT` of the report: "+strings.Join(reportFormats, ", "))
	fs.BoolVar(&f.list, "list", false, "list the checks and the rules that they prove, and run none")
	f.files = map[string]*string{}
	for _, format := range reportFormats[1:] {
		f.files[format] = fs.String(format, "", "also write the report to `FILE`, in the format "+format)
	}
}

// selected reports whether a check is to be run.
func (f *suiteFlags) selected(check string) bool {
	return len(f.checks) == 0 || slices.ContainsFunc(f.checks, func(pattern string) bool { return fits(pattern, check) })
}

// fits reports whether a check has that name, or one of that pattern.
func fits(pattern, check string) bool {
	ok, err := path.Match(pattern, check)
	return pattern == check || ok && err == nil
}

// isOwn reports whether a check may be one of the author's cases.
func (f *suiteFlags) isOwn(check string) bool {
	return f.cases && strings.HasPrefix(check, creatures.CasesCheck+"/")
}

// prepare checks the flags, and reads the baseline. rules has the rules of every check, and
// set names the requirements.
func (f *suiteFlags) prepare(set string, rules map[string][]string) (*report.Baseline, error) {
	f.set = set
	if !slices.Contains(reportFormats, f.format) {
		return nil, usage("--format %s: use %s", f.format, strings.Join(reportFormats, ", "))
	}
	for _, pattern := range f.checks {
		found := f.isOwn(pattern)
		for check := range rules {
			found = found || fits(pattern, check)
		}
		if !found {
			return nil, usage("--check %s: there is no such check; --list shows them", pattern)
		}
	}
	if f.expected == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.expected)
	if err != nil {
		return nil, failWith(exitUsage, err)
	}
	b, err := report.ParseBaseline(f.expected, text, func(check string) bool {
		_, ok := rules[check]
		return ok || f.isOwn(check)
	})
	return b, failWith(exitUsage, err)
}

// show lists the checks.
func (f *suiteFlags) show(s streams, names []string, rules map[string][]string) error {
	for _, name := range names {
		if f.selected(name) {
			if _, err := fmt.Fprintf(s.out, "%s  %s\n", name, strings.Join(rules[name], " ")); err != nil {
				return failWith(exitFailed, err)
			}
		}
	}
	return nil
}

// finish settles the report, writes it wherever the flags say, and returns the outcome.
func (f *suiteFlags) finish(s streams, r *report.Report, b *report.Baseline) error {
	if len(r.Results) == 0 {
		return usage("--check %s: there is no such check; --list shows them, and for creatures --cases adds those of a file", strings.Join(f.checks, ", "))
	}
	set, err := requirements.Load(f.set)
	if err != nil {
		return failWith(exitFailed, err)
	}
	r.Settle(set, b, func(check string) bool { return len(f.checks) == 0 && (f.own || !f.isOwn(check)) })
	writers := map[string]func(io.Writer) error{"text": r.Text, "json": r.JSON, "junit": r.JUnit, "html": r.HTML, "badge": r.Badge}
	for format, file := range f.files {
		if *file == "" {
			continue
		}
		var b strings.Builder
		if err := writers[format](&b); err != nil {
			return failWith(exitFailed, err)
		}
		if err := os.WriteFile(*file, []byte(b.String()), 0o666); err != nil {
			return failWith(exitFailed, err)
		}
	}
	var out strings.Builder
	if err := writers[f.format](&out); err != nil {
		return failWith(exitFailed, err)
	}
	to := io.Writer(s.out)
	if f.format == "text" {
		to = s.text()
	}
	if _, err := io.WriteString(to, out.String()); err != nil {
		return failWith(exitFailed, err)
	}
	if !r.Conforms {
		return &exit{code: exitNonconforming, err: errDoesNotConform, shown: true}
	}
	return nil
}

// shellWord quotes a word for a shell if it needs it.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=+,@%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func conformanceCreatureCommand(s streams) *cobra.Command {
	var f suiteFlags
	var config string
	var cases []string
	var cache cacheFlags
	cmd := &cobra.Command{
		Use:   "creature MODULE…",
		Short: "Test whether modules follow the contract of creatures",
		Long: `creature tests modules. It needs nothing but the module: it draws deliveries and
configurations from a fixed seed, in the shape of the module's manifest. It tests the form
of the module, unknown kinds of deliveries, limits, configurations that the schema does
not allow, and whether linear memory is only a cache. --cases adds deliveries with the
effects that the author expects.

MODULE is a file or builtin:NAME. Effects in a file of cases are written as terrarium call
shows them.`,
		Example: `  terrarium conformance creature build/spotter.wasm --cases cases.yaml
  terrarium conformance creature builtin:echo -o junit`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			rules := creatures.Checks()
			if f.list {
				return f.show(s, creatures.Names(), rules)
			}
			if len(args) == 0 {
				return usage("name a module; usage: %s", cmd.UseLine())
			}
			f.cases, f.own = true, len(cases) > 0
			b, err := f.prepare("abi-1", rules)
			if err != nil {
				return err
			}
			own, err := readCases(cases)
			if err != nil {
				return failWith(exitUsage, err)
			}
			return f.creatures(cmd.Context(), s, args, &creatures.Subject{Config: config, Cases: own}, repeatCreature(config, cases), b, &cache)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&config, "config", "", "configuration with which the creature starts, a JSON object; by default one that fits the schema of its manifest")
	cmd.Flags().StringArrayVar(&cases, "cases", nil, "also run the cases in `FILE`; may be repeated")
	cache.add(cmd.Flags())
	return cmd
}

func readCases(names []string) ([]*creatures.Case, error) {
	var all []*creatures.Case
	var wrong []error
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil {
			var list []*creatures.Case
			list, err = creatures.ParseCases(name, text)
			all = append(all, list...)
		}
		wrong = append(wrong, err)
	}
	return all, errors.Join(wrong...)
}

// repeatCreature returns the command that repeats a check of a module.
func repeatCreature(config string, cases []string) func(module, check string) string {
	return func(module, check string) string {
		out := "terrarium conformance creature " + shellWord(module) + " --check " + shellWord(check)
		if config != "" {
			out += " --config " + shellWord(config)
		}
		for _, file := range cases {
			out += " --cases " + shellWord(file)
		}
		return out
	}
}

func (f *suiteFlags) creatures(ctx context.Context, s streams, modules []string, like *creatures.Subject, repeat func(module, check string) string, b *report.Baseline, cache *cacheFlags) (err error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	o := host.Options{Compiler: compiler(), Translations: translations()}
	if o.CacheDir, o.CacheOptional, err = cache.resolve(); err != nil {
		return err
	}
	h, err := host.New(ctx, o)
	if err != nil {
		return failWith(exitFailed, err)
	}
	defer func() { err = errors.Join(err, failWith(exitFailed, h.Close(context.WithoutCancel(ctx)))) }()
	r := &report.Report{Subject: "creature", Name: strings.Join(modules, ", ")}
	for _, name := range modules {
		wasm, err := moduleBytes(ctx, s, name)
		if err != nil {
			return failWith(exitUsage, err)
		}
		subject := *like
		subject.Name, subject.Wasm = name, wasm
		results, err := creatures.Run(ctx, h, &subject, f.selected)
		if err != nil {
			return interrupted(ctx)
		}
		for i := range results {
			results[i].Repeat = repeat(name, results[i].Check)
		}
		r.Results = append(r.Results, results...)
	}
	return f.finish(s, r, b)
}

func conformanceHostCommand(s streams) *cobra.Command {
	var f suiteFlags
	var h hostFlags
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Test whether a host follows the contract",
		Long: `host tests a host of creatures. --adapter starts a program that operates the host: it
reads requests from its standard input and answers on its standard output, one JSON object
on each line, as docs/reference/host-adapters.md describes. Without --adapter, the host in
terrarium itself is tested.

If an adapter ends, hangs or writes something that is not a response, the check is
inconclusive, and the adapter is started again.

--hostile runs modules that attack their host. Each must be refused or end within its
limits, and the host must then serve another creature. If the adapter ends or hangs during
a check, the check fails.`,
		Example: `  terrarium conformance host
  terrarium conformance host --adapter "python3 host.py" --expected baseline.yaml --html report.html`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.host(cmd.Context(), s, &h) },
	}
	f.add(cmd)
	cmd.Flags().StringVar(&h.adapter, "adapter", "", "`COMMAND` that operates the host: words separated by spaces")
	cmd.Flags().DurationVar(&h.timeout, "timeout", 30*time.Second, "how long one answer of the adapter may take")
	cmd.Flags().BoolVar(&h.hostile, "hostile", false, "run the gallery of hostile modules instead of the cases")
	return cmd
}

func conformanceAdapterCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    "adapter",
		Short:  "Operate the host of this program for terrarium conformance host --adapter",
		Hidden: true,
		Args:   arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			a, err := hosts.NewOwn(ctx, host.Options{Translations: translations()})
			if err == nil {
				err = errors.Join(hosts.Serve(ctx, a, s.in, s.out), a.Close(ctx))
			}
			return failWith(exitFailed, err)
		},
	}
}
