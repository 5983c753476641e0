package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/conformance/stores"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// kinds are the stores of this program: SQLite with each durability that has a store.
var kinds = []journal.Durability{journal.Normal, journal.Full}

func storeNames() (out []string) {
	for _, d := range kinds {
		out = append(out, "sqlite/"+d.String())
	}
	return out
}

func conformanceStoreCommand(s streams) *cobra.Command {
	var f suiteFlags
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "store [NAME…]",
		Short: "Test whether the session stores of this program keep their promises",
		Long: `store tests the session stores that this program has: SQLite with each durability. Every
check creates its own directories below TMPDIR, and removes them afterwards. Run it with
TMPDIR on a disk to test that disk and its file system too.

NAME is one of ` + strings.Join(storeNames(), " and ") + `; by default all are tested. The stores of a Go
program are tested by the package conformance/stores.`,
		Example: `  terrarium conformance store
  TMPDIR=/mnt/sessions terrarium conformance store sqlite/full --junit report.xml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.stores(cmd.Context(), s, args, timeout) },
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long one check may take")
	return cmd
}

func (f *suiteFlags) stores(ctx context.Context, s streams, names []string, timeout time.Duration) error {
	rules := stores.Checks()
	if f.list {
		return f.show(s, stores.Names(), rules)
	}
	for _, name := range names {
		if !slices.Contains(storeNames(), name) {
			return usage("there is no store %s; this program has %s", name, strings.Join(storeNames(), " and "))
		}
	}
	if timeout <= 0 {
		return usage("--timeout %v: use a duration above 0, such as 1m", timeout)
	}
	b, err := f.prepare("store-1", rules)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	r := &report.Report{Subject: "store", Name: strings.Join(names, ", ")}
	if len(names) == 0 {
		names = storeNames()
		r.Name = "sqlite"
	}
	for i, name := range storeNames() {
		if !slices.Contains(names, name) {
			continue
		}
		results, err := stores.Run(ctx, sqliteSubject(name, kinds[i], timeout), f.selected)
		if err != nil && ctx.Err() != nil {
			return interrupted(ctx)
		} else if err != nil {
			return failWith(exitFailed, err)
		}
		for i := range results {
			results[i].Repeat = "terrarium conformance store " + name + " --check " + results[i].Check
		}
		r.Results = append(r.Results, results...)
	}
	return f.finish(s, r, b)
}

func sqliteSubject(name string, d journal.Durability, limit time.Duration) *stores.Subject {
	return &stores.Subject{Name: name, Limit: limit, Open: func(ctx context.Context, dir string) (journal.Storage, error) {
		directory, err := sqlitestore.Open(ctx, dir, sqlitestore.Options{})
		if err != nil {
			return nil, err
		}
		return durable{directory, d}, nil
	}}
}

// durable is a directory whose stores have at least a certain durability.
type durable struct {
	*sqlitestore.Directory
	least journal.Durability
}

// raise raises a durability. It leaves Volatile as it is, so that requesting a store
// without durability stays an error.
func (d durable) raise(spec *journal.StoreSpec) {
	if spec.Durability != journal.Volatile {
		spec.Durability = max(spec.Durability, d.least)
	}
}

// Create implements [journal.Storage].
func (d durable) Create(ctx context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	specs = slices.Clone(specs)
	for i := range specs {
		d.raise(&specs[i])
	}
	return d.Directory.Create(ctx, specs...)
}

// Cut implements [journal.Storage].
func (d durable) Cut(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	cut.Children = slices.Clone(cut.Children)
	for i := range cut.Children {
		d.raise(&cut.Children[i].StoreSpec)
	}
	return d.Directory.Cut(ctx, cut)
}

// KeepNewest implements [storetest.Pruner].
func (d durable) KeepNewest(ctx context.Context, session journal.SessionID, events int64) error {
	_, err := d.Prune(ctx, session, sqlitestore.Retention{Events: events})
	return err
}
