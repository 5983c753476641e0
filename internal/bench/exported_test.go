package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/telemetry"
)

const exportedRecipe = `
channel "in" {}
creature "relay" {
  module = "builtin:relay"
  listen = [channel.in]
}
`

// BenchmarkExported measures what spans cost turns, as fast as they are sent and at 1,000 a
// second. The collector runs in the same process and keeps nothing. Spans that are left out
// because there are too many are counted.
func BenchmarkExported(b *testing.B) {
	for name, gap := range map[string]time.Duration{"unpaced": 0, "1000": time.Millisecond} {
		b.Run(name+"/alone", func(b *testing.B) { exportedTurns(b, gap, false) })
		b.Run(name+"/exported", func(b *testing.B) { exportedTurns(b, gap, true) })
	}
}

func exportedTurns(b *testing.B, gap time.Duration, exported bool) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer collector.Close()
	path := filepath.Join(b.TempDir(), "relay.hcl")
	must(b, os.WriteFile(path, []byte(exportedRecipe), 0o644))
	t, err := terrarium.New(b.Context(), terrarium.Options{})
	must(b, err)
	defer t.Close(b.Context())
	applied, err := t.Apply(b.Context(), path, terrarium.RecipeOptions{})
	must(b, err)
	must(b, t.WaitIdle(b.Context()))
	var exporter *telemetry.Exporter
	if exported {
		o, err := telemetry.FromEnvironment([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL})
		must(b, err)
		exporter = telemetry.Start(b.Context(), t, o)
	}
	before := processorTime(b)
	b.ResetTimer()
	begun := time.Now()
	for i := range b.N {
		if gap > 0 {
			time.Sleep(time.Until(begun.Add(time.Duration(i) * gap)))
		}
		_, err := t.Send(b.Context(), applied.Channels["channel.in"], terrarium.Outgoing{Payload: []byte("frog")})
		must(b, err)
	}
	must(b, t.WaitIdle(b.Context()))
	b.StopTimer()
	b.ReportMetric((processorTime(b)-before)*1e6/float64(b.N), "cpu-us/turn")
	if exported {
		must(b, exporter.Close(b.Context()))
		b.ReportMetric(float64(exporter.Lost())/float64(b.N), "lost/turn")
	}
}
