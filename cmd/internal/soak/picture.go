package main

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// Sizes of the picture, in pixels.
const (
	chartWidth, chartHeight = 420, 150
	chartGap                = 50
	chartColumns            = 2
)

// picture draws every curve over time, as SVG.
func picture(w io.Writer, title string, samples []sample) error {
	rows := (len(series) + chartColumns - 1) / chartColumns
	width, height := chartColumns*(chartWidth+chartGap)+chartGap, rows*(chartHeight+chartGap)+2*chartGap
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/><text x="%d" y="30" font-size="16">%s</text>`+"\n", width, height, chartGap, html.EscapeString(title))
	for i := range series {
		x, y := chartGap+i%chartColumns*(chartWidth+chartGap), 2*chartGap+i/chartColumns*(chartHeight+chartGap)
		chart(&b, x, y, i, samples)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// chart draws one curve from 0 to its largest value.
func chart(b *strings.Builder, x, y, curve int, samples []sample) {
	var most, end float64
	for _, s := range samples {
		most, end = max(most, s.values[curve]), s.at.Seconds()
	}
	name := strings.TrimSpace(series[curve].name + ", " + series[curve].unit)
	fmt.Fprintf(b, `<text x="%d" y="%d">%s, at most %.0f</text>`+"\n", x, y-6, html.EscapeString(strings.TrimSuffix(name, ",")), most)
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#bbb"/>`+"\n", x, y, chartWidth, chartHeight)
	if most == 0 || end == 0 {
		return
	}
	var points []string
	for _, s := range samples {
		points = append(points, fmt.Sprintf("%.1f,%.1f", float64(x)+s.at.Seconds()/end*chartWidth, float64(y)+(1-s.values[curve]/most)*chartHeight))
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="#0a6" stroke-width="1.5"/>`+"\n", strings.Join(points, " "))
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" fill="#666">%.0f s</text>`+"\n", x+chartWidth, y+chartHeight+14, end)
}
