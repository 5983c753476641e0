package gateway

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/seed47132306/terrarium"
)

// collected opens a gateway whose uplink collects the alerts.
func collected(t *testing.T) (g *Gateway, alerts func() []string) {
	t.Helper()
	var got []string
	g, err := Open(t.Context(), terrarium.Options{Dir: t.TempDir()}, func(_ context.Context, _ uint64, text []byte) error {
		got = append(got, string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, func() []string { return got }
}

// TestAlarmBeforeHalfALine: an alarm is forwarded although the next line is not complete yet.
func TestAlarmBeforeHalfALine(t *testing.T) {
	g, alerts := collected(t)
	read := 0
	pieces := []string{"s01 1 too hot\ns02 2 to", "o cold\n"}
	err := g.Serve(t.Context(), reader(func(p []byte) (int, error) {
		if want := []string{"s01 1 too hot", "s02 2 too cold"}[:read]; !slices.Equal(alerts(), want) {
			t.Errorf("before piece %d: %q, want %q", read, alerts(), want)
		}
		if read == len(pieces) {
			return 0, io.EOF
		}
		read++
		return copy(p, pieces[read-1]), nil
	}))
	if cerr := g.Close(t.Context()); err != nil || cerr != nil {
		t.Error(err, cerr)
	}
}

// TestLinesThatAreTooLong: no part of such a line is taken for a reading, however the line is
// read, and the line after it is handled.
func TestLinesThatAreTooLong(t *testing.T) {
	long := strings.Repeat("x", 4096)
	g, alerts := collected(t)
	seen := 0
	for _, in := range []string{
		long + "s01 1 too hot\ns02 2 too cold\n",
		long + long + "s01 1 too hot\r\ns02 2 too cold\n",
		"s01 1 too hot" + long + "\ns02 2 too cold",
		"s02 2 too cold\n" + long + "s01 1 too hot",
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(in), "in halves": iotest.HalfReader(strings.NewReader(in)), "by bytes": iotest.OneByteReader(strings.NewReader(in))} {
			if err := g.Serve(t.Context(), r); err != nil {
				t.Error(err)
			}
			if got := alerts()[seen:]; !slices.Equal(got, []string{"s02 2 too cold"}) {
				t.Errorf("%s, %.20q…: %q", name, in, got)
			}
			seen = len(alerts())
		}
	}
	if err := g.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// reader is a function that reads.
type reader func(p []byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }
