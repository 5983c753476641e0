package seeded

import (
	"flag"
	"testing"
)

// TestPart compares a part with the whole: one case in n, and every case if the
// environment or the name of a case requests it.
func TestPart(t *testing.T) {
	count := func(cases, n int) (had int) {
		for i := range cases {
			if Part(i, n) {
				had++
			}
		}
		return had
	}
	t.Setenv("TERRARIUM_EVERY", "")
	if first, had := Part(0, 3), count(10, 3); !first || had != 4 {
		t.Errorf("one case in 3 of 10: it has %d, the first %v; want 4, true", had, first)
	}
	run := flag.Lookup("test.run").Value
	was := run.String()
	for name, want := range map[string]int{"TestPart": 4, "TestPart/7": 10} {
		if err := run.Set(name); err != nil {
			t.Fatal(err)
		}
		if had := count(10, 3); had != want {
			t.Errorf("with -run %s, it has %d of 10; want %d", name, had, want)
		}
	}
	if err := run.Set(was); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TERRARIUM_EVERY", "1")
	if had := count(10, 3); had != 10 {
		t.Errorf("every case of 10: it has %d", had)
	}
}
