package main

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/seed47132306/terrarium/operations"
)

// connectorsText shows sources and sinks with what they have done, or with what keeps them
// from it.
func connectorsText(list []operations.ConnectorRecord) string {
	if len(list) == 0 {
		return ""
	}
	t := newTable()
	t.AppendHeader(table.Row{"", "name", "kind", "channel", "state", "messages", "left out", "failures", ""})
	for _, c := range list {
		note := c.Reaches
		switch {
		case c.Error != "":
			note = oneLine(c.Error)
		case c.Problem != "":
			note = oneLine(c.Problem)
		}
		t.AppendRow(table.Row{c.Direction, printable(c.Name), c.Kind, printable(c.Channel), c.State, c.Messages, c.Refused, c.Failures, note})
	}
	return "\n" + t.Render() + "\n"
}
