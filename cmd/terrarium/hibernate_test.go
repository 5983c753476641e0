package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
)

// TestHibernateFlags proves what the flags set, and which values they refuse.
func TestHibernateFlags(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		after  time.Duration
		memory int64
		wrong  bool
	}{
		{nil, engine.DefaultHibernateAfter, 0, false},
		{[]string{"--hibernate-after", "10s", "--process-memory", "2GiB"}, 10 * time.Second, 2 << 30, false},
		{[]string{"--hibernate-after", "0"}, -1, 0, false},
		{[]string{"--hibernate-after", "-1s"}, 0, 0, true},
		{[]string{"--process-memory", "much"}, 0, 0, true},
	} {
		var f hibernateFlags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.add(fs)
		if err := fs.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		var o terrarium.Options
		err := f.options(&o)
		if (err != nil) != tt.wrong || err == nil && (o.HibernateAfter != tt.after || o.ProcessMemory != tt.memory) {
			t.Errorf("%q sets %v and %d, with the error %v", tt.args, o.HibernateAfter, o.ProcessMemory, err)
		}
	}
}
