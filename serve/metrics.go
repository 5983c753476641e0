package serve

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium"
)

// maxSeries is the number of creatures up to which each has series of its own. Beyond it,
// only deployments have.
const maxSeries = 1000

// metrics answers with figures in the text format of Prometheus. They are read from the
// status of the graphs at each request, so they cost nothing between requests; only the
// histograms need turns to be measured.
func (h *Handler) metrics(w http.ResponseWriter, r *http.Request) {
	c, err := h.caller(r)
	if err != nil {
		unauthorized(w, err)
		return
	}
	if len(c.rights.Graphs) > 0 {
		fail(w, refused("the metrics describe all graphs, but the token is only for some", "use a token that is not limited to graphs"))
		return
	}
	figures, err := h.t.Metrics()
	if err != nil {
		fail(w, err)
		return
	}
	figures = append(figures,
		terrarium.Metric{Name: "terrarium_build_info", Help: "the version", Labels: map[string]string{"version": terrarium.Version}, Value: 1},
		terrarium.Metric{Name: "terrarium_streams", Help: "open streams of events", Value: float64(h.callers.openStreams())},
	)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(append(exposition(figures), h.turns.text(r.Context())...))
}

// label escapes the value of a label.
func label(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// exposition returns the text of figures. Those with the same name follow each other.
func exposition(figures []terrarium.Metric) []byte {
	var b bytes.Buffer
	for len(figures) > 0 {
		n := 1
		for n < len(figures) && figures[n].Name == figures[0].Name {
			n++
		}
		kind := "gauge"
		if figures[0].Counter {
			kind = "counter"
		}
		fmt.Fprintf(&b, "# HELP %s %s.\n# TYPE %s %s\n", figures[0].Name, figures[0].Help, figures[0].Name, kind)
		for _, f := range series(figures[:n]) {
			b.WriteString(f.Name)
			for i, name := range slices.Sorted(maps.Keys(f.Labels)) {
				fmt.Fprintf(&b, `%s%s="%s"`, cmp.Or(strings.Repeat(",", min(i, 1)), "{"), name, label(f.Labels[name]))
			}
			if len(f.Labels) > 0 {
				b.WriteByte('}')
			}
			fmt.Fprintf(&b, " %v\n", f.Value)
		}
		figures = figures[n:]
	}
	return b.Bytes()
}

// series returns the series of one figure. If there are too many creatures, those of a
// deployment are added up.
func series(figures []terrarium.Metric) []terrarium.Metric {
	if len(figures) <= maxSeries {
		return figures
	}
	sums := map[string]float64{}
	for _, f := range figures {
		sums[f.Labels["deployment"]] += f.Value
	}
	out := make([]terrarium.Metric, 0, len(sums))
	for _, deployment := range slices.Sorted(maps.Keys(sums)) {
		f := figures[0]
		f.Labels, f.Value = map[string]string{"deployment": deployment}, sums[deployment]
		out = append(out, f)
	}
	return out
}
