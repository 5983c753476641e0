package operations

import (
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/sqlitestore/sqlitetest"
)

// After its answer, the effect of an operation is in the store's file, so a process that is
// killed right then loses nothing of it.
func TestAnAnsweredChangeIsWritten(t *testing.T) {
	tr := open(t, terrarium.Options{Dir: t.TempDir()})
	for _, name := range []string{"a", "b", "c"} {
		add(t, tr, name, "builtin:relay")
	}
	do(t, tr, "connect", `{"from":"a","to":"b","channel":"in"}`)
	do(t, tr, "connect", `{"from":"b","to":"c","channel":"on"}`)
	if err := tr.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	beside := sqlitetest.Open(t, "file:"+graphOf(t, tr, "a").StorePath+"?mode=ro")
	defer beside.Close()
	count, err := beside.Prepare("SELECT count(*) FROM events WHERE kind = 'topology_changed'")
	if err != nil {
		t.Fatal(err)
	}
	written := func() (n int) {
		if err := count.QueryRow().Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	last := written()
	for range 10 {
		for _, step := range []struct{ op, args string }{
			{"stop_creature", `{"creature":"a"}`}, {"start_creature", `{"creature":"a"}`},
			{"promote", `{"creature":"a"}`}, {"demote", `{"creature":"a"}`},
			{"connect", `{"from":"a","to":"c","channel":"by"}`}, {"disconnect", `{"from":"a","to":"c"}`},
			{"batch", `{"ops":[{"op":"remove_channel","channel":"by"}]}`},
		} {
			do(t, tr, step.op, step.args)
			now := written()
			if now <= last {
				t.Errorf("%s is answered, and not in the file", step.op)
			}
			last = now
		}
	}
}
