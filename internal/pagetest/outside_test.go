package pagetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const outward = `
variable "token" {
  type      = string
  sensitive = true
}
channel "readings" {}
channel "alerts" {}
http "alerts" {
  allow       = ["https://alerts.example/*"]
  methods     = ["POST"]
  headers     = { authorization = "Bearer ${var.token}" }
  timeout     = "7s"
  rate        = 3
  concurrency = 2
}
llm "main" {
  endpoint           = "https://models.example/v1"
  models             = ["small"]
  key                = var.token
  tokens_per_graph   = 90000
  money_per_creature = "1.5"
  prices             = { small = "0.15 0.60" }
}
source "file" "log" {
  channel = channel.readings
  path    = "readings.log"
}
sink "file" "kept" {
  channel = channel.alerts
  path    = "alerts.jsonl"
}
creature "watch" {
  module = "builtin:echo"
  listen = [channel.readings]
  send   = [channel.alerts]
  grants {
    http = ["alerts"]
    llm  = ["main"]
  }
}
creature "hermit" { module = "builtin:echo" }
`

// Everything that leads outside is on the page: at a creature, and at its graph.
func TestOutside(t *testing.T) {
	dir := t.TempDir()
	recipe := filepath.Join(dir, "outward.hcl")
	for name, text := range map[string]string{recipe: outward, filepath.Join(dir, "readings.log"): "12\n13\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	l := startLive(t)
	l.do("apply", `{"recipe": `+quote(recipe)+`, "vars": {"token": `+quote(secret)+`}}`)
	b := open(t, l.link("graph?creature=watch"), desk)
	b.until("document.querySelectorAll('.grant').length === 4")
	b.holds(".panel .tab", "http.alerts", "POST https://alerts.example/*", "2 attempts at a time, 3 a second, each within 7s",
		"llm.main", "models small at https://models.example/v1", "used by the creature", "0.00 of 1.50 of money", "used by the graph", "0 of 90,000 tokens",
		"source log of channel.readings", "readings.log, ", "sink kept of channel.alerts")
	b.shot("outside-creature")
	b.clickText("All that leads outside")
	b.until("document.querySelector('main')?.textContent.includes('2 capabilities, 2 sources and sinks')")
	b.until("document.querySelector('main').textContent.includes('working')")
	b.holds("main section", "http.alerts", "POST https://alerts.example/*", "llm.main", "0 of 90,000 tokens", "watch", "in: log", "out: kept", "readings.log", "alerts.jsonl", "channel.readings", "channel.alerts")
	b.shot("outside")
	if text := eval[string](b, "document.querySelector('main').textContent"); strings.Contains(text, "hermit") {
		t.Error("a creature without capabilities is listed:", text)
	}

	eval[any](b, "location.hash = '#/graph?show=table'")
	b.until("[...document.querySelectorAll('.table-view a')].some(a => a.href.includes('#/outside') && a.textContent === '4')")
	eval[any](b, "location.hash = '#/graph?creature=hermit'")
	b.until("document.querySelector('.panel h1')?.textContent === 'hermit'")
	b.holds(".panel .tab", "Outside", "Nothing.")
	for _, view := range []string{"outside", "graph?creature=watch", "graph?show=table"} {
		b.goTo(view)
		if strings.Contains(eval[string](b, "document.documentElement.outerHTML"), secret) {
			t.Errorf("%s: the page has a secret", view)
		}
	}
	if status := l.do("status", `{}`); strings.Contains(quote(status), secret) {
		t.Error("the status has a secret")
	}
}
