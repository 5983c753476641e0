package near

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	long := strings.Repeat("x", MaxName)
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"send", "sned", 2}, {"send", "send_to", 3}, {"größe", "grösse", 2},
		{long, long[1:], 1}, {long + "x", long, Far}, {long, long + "x", Far}, {strings.Repeat("x", 1<<26), "send", Far},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("the distance of %.70q and %.70q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
