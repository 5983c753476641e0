package report

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// HTML writes a report as one page that needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	passed, scored := r.Score()
	return pageTemplate.Execute(w, struct {
		*Report
		Passed, Scored int
		Line           string
		Bad            []*Result
	}{r, passed, scored, r.Summary(), r.bad()})
}
