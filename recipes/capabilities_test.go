package recipes

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// forecast is a kind of capability that a program has added.
type forecast struct{}

func (forecast) Name() string { return "weather" }
func (forecast) Settings() []capability.Setting {
	return []capability.Setting{
		{Name: "region", Type: capability.Text, Required: true, Doc: "which region"}, {Name: "every", Type: capability.Duration, Doc: "how often"},
		{Name: "most", Type: capability.Size, Doc: "how much"}, {Name: "key", Type: capability.Text, Sensitive: true, Doc: "the key"},
	}
}

func (forecast) Open(raw json.RawMessage) (capability.Grant, error) {
	switch {
	case strings.Contains(string(raw), "panics"):
		panic("the region panics")
	case strings.Contains(string(raw), "nothing"):
		return nil, nil
	}
	return noGrant{}, nil
}

type noGrant struct{ capability.Grant }

func (noGrant) Warnings() []capability.Warning { return nil }

// TestCapabilities proves what creatures are granted, and which settings of a grant are
// secret.
func TestCapabilities(t *testing.T) {
	recipe := mustLoad(t, write(t, `
variable "key" {
  default   = "k3y-k3y-k3y"
  sensitive = true
}
channel "c" {}
http "alerts" {
  allow   = ["https://example.com/**"]
  methods = ["POST"]
  headers = { x-key = var.key }
  timeout = "2s"
  retries = 0
}
capability "weather" "forecast" {
  settings = { region = "eu", every = "1m", most = "4KiB", key = var.key }
}
species "s" {
  module = "builtin:relay"
  grants {
    http         = ["alerts"]
    capabilities = ["weather.forecast"]
  }
}
creature "a" {
  species = species.s
  listen  = [channel.c]
}
creature "b" {
  species = species.s
  listen  = [channel.c]
  grants {
    http = []
  }
}
`), Options{Capabilities: []capability.Kind{forecast{}}}).Deployment()
	alerts := deploy.Capability{Kind: "http", Name: "alerts", Secret: []string{"headers"}, From: map[string][]string{"headers": {"var.key"}},
		Settings: json.RawMessage(`{"allow":["https://example.com/**"],"headers":{"x-key":"k3y-k3y-k3y"},"methods":["POST"],"retries":0,"timeout":2000000000}`)}
	weather := deploy.Capability{Kind: "weather", Name: "forecast", Secret: []string{"key"}, From: map[string][]string{"key": {"var.key"}}, Settings: json.RawMessage(`{"every":60000000000,"key":"k3y-k3y-k3y","most":4096,"region":"eu"}`)}
	for i, want := range [][]deploy.Capability{{alerts, weather}, {weather}} {
		if diff := cmp.Diff(want, recipe.Creatures[i].Capabilities); diff != "" {
			t.Errorf("%s (-want +got):\n%s", recipe.Creatures[i].Name, diff)
		}
	}
	stored := deploy.NewStoredSpec(&recipe.Creatures[0]).Capabilities
	for _, c := range stored {
		if !c.Lacking || strings.Contains(string(c.Settings), "k3y") || len(c.Settings) < 3 {
			t.Errorf("the store would keep %+v", c)
		}
	}
}

// TestFaultyKindOfCapability proves that a kind that panics is a finding.
func TestFaultyKindOfCapability(t *testing.T) {
	for region, want := range map[string]string{
		"panics":  "The capability weather.forecast panicked: the region panics",
		"nothing": "The capability weather.forecast returned neither a result nor an error",
	} {
		_, diags := Load(t.Context(), write(t, `
capability "weather" "forecast" {
  settings = { region = "`+region+`" }
}
`), Options{Capabilities: []capability.Kind{forecast{}}})
		if !strings.Contains(fmt.Sprint(diags), want) {
			t.Errorf("the settings %s give %v, want %q", region, diags, want)
		}
	}
}
