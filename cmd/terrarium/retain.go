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

// retainFlags bound what a session keeps.
type retainFlags struct {
	age     time.Duration
	events  int64
	bytes   string
	maxDisk string
}

func (f *retainFlags) add(fs *pflag.FlagSet) {
	fs.DurationVar(&f.age, "retain-age", 0, "give up history that is older, such as 720h (default keep all)")
	fs.Int64Var(&f.events, "retain-events", 0, "keep so many of the newest events of each session (default all)")
	fs.StringVar(&f.bytes, "retain-bytes", "", "keep each session's file at `SIZE` or so, such as 500MB (default any)")
	fs.StringVar(&f.maxDisk, "max-disk", "", "give up old history while the session directory needs more than `SIZE` (default any)")
}

// options adds the flags to options, in the words of the library.
func (f *retainFlags) options(o *terrarium.Options) (err error) {
	if f.age < 0 {
		return usage("--retain-age %v: use a time that is not negative", f.age)
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

// pruneAtEnd has a command that ends give up what it was told not to keep. That happens
// in the background now and then, and a short run would be over before. An
// interrupted one leaves it to the next.
func (f *retainFlags) pruneAtEnd(ctx context.Context, s streams, t *terrarium.Terrarium) error {
	if f.age == 0 && f.events == 0 && f.bytes == "" && f.maxDisk == "" {
		return nil
	}
	err := t.Settle(ctx)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	_, err = fmt.Fprintf(s.err, "Warning: %s\n", printable(err.Error())) // the run is not at fault
	return err
}

// parseSize reads a number of bytes, such as 500MB or 2GiB; nothing is 0.
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
