package seeded

import "testing"

// TestPart compares a part with the whole: one case in n, and every case if the
// environment requests all of them.
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
	t.Setenv("TERRARIUM_EVERY", "1")
	if had := count(10, 3); had != 10 {
		t.Errorf("every case of 10: it has %d", had)
	}
}
