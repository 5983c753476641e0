package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/seed47132306/terrarium"
)

// retainFlags holds the flags that bound how much history a session keeps.
type retainFlags struct {
	age     time.Duration
	events  int64
	bytes   string
	maxDisk string
}

func (f *retainFlags) add(fs *pflag.FlagSet) {
	fs.DurationVar(&f.age, "retain-age", 0, "prune history older than this, such as 720h (default keep all)")
	fs.Int64Var(&f.events, "retain-events", 0, "keep this many of the newest events of each session (default all)")
	fs.StringVar(&f.bytes, "retain-bytes", "", "keep each session's file at about `SIZE`, such as 500MB (default no bound)")
	fs.StringVar(&f.maxDisk, "max-disk", "", "prune old history while the session directory needs more than `SIZE` (default no bound)")
}

// options adds the flags to options of the library.
func (f *retainFlags) options(o *terrarium.Options) (err error) {
	if f.age < 0 {
		return usage("--retain-age %v: use a duration that is not negative", f.age)
	}
	if f.events < 0 {
		return usage("--retain-events %d: use a number that is not negative", f.events)
	}
	o.Retain.Age, o.Retain.Events = f.age, f.events
	if o.Retain.Bytes, err = parseSize("--retain-bytes", f.bytes); err != nil {
		return err
	}
	o.MaxDiskBytes, err = parseSize("--max-disk", f.maxDisk)
	return err
}

// pruneAtEnd prunes history at the end of a command. Pruning also happens in the
// background now and then, but a short run would end before. An interrupted run leaves
// it to the next.
func (f *retainFlags) pruneAtEnd(ctx context.Context, s streams, t *terrarium.Terrarium) error {
	if f.age == 0 && f.events == 0 && f.bytes == "" && f.maxDisk == "" {
		return nil
	}
	err := t.Settle(ctx)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	_, err = fmt.Fprintf(s.err, "Warning: %s\n", printable(err.Error())) // the run itself succeeded
	return err
}

// parseSize parses a number of bytes, such as 500MB or 2GiB. An empty text is 0.
func parseSize(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, usage("%s %s: use a size such as 500MB or 2GiB", flag, text)
	}
	return int64(n), nil
}
