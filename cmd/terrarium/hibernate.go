package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
)

// hibernateFlags holds the flags that say when creatures hibernate.
type hibernateFlags struct {
	after  time.Duration
	memory string
}

func (f *hibernateFlags) add(fs *pflag.FlagSet) {
	fs.DurationVar(&f.after, "hibernate-after", engine.DefaultHibernateAfter, "creatures hibernate once they have been idle for this time, or at the latest for twice this time: they have no instance until the next delivery; 0 for no limit")
	fs.StringVar(&f.memory, "process-memory", "", "when the process uses nine tenths of `SIZE`, such as 2GiB, creatures hibernate after a second or two (default the value of GOMEMLIMIT; without it, no bound)")
}

// options adds the flags to options of the library.
func (f *hibernateFlags) options(o *terrarium.Options) (err error) {
	if f.after < 0 {
		return usage("--hibernate-after %v: use a time such as 10m, or 0 if creatures may be idle for any time", f.after)
	}
	if o.HibernateAfter = f.after; f.after == 0 {
		o.HibernateAfter = -1
	}
	o.ProcessMemory, err = parseSize("--process-memory", f.memory)
	return err
}
