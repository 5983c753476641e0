package recipes

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
)

// pipe is a kind of source that a program has added.
type pipe struct{}

func (pipe) Name() string { return "pipe" }

func (pipe) Direction() connector.Direction { return connector.Source }

func (pipe) Settings() []capability.Setting {
	return []capability.Setting{
		{Name: "path", Type: capability.Path, Required: true, Doc: "where it is"},
		{Name: "mode", Type: capability.Text, Choices: []string{"fast", "slow"}, Default: `"fast"`, Doc: "how"},
		{Name: "key", Type: capability.Text, Sensitive: true, Doc: "the key"},
		{Name: "most", Type: capability.Size, Doc: "how much"},
	}
}

// narrow needs its mode exclusively.
type narrow struct {
	connector.Connector
	Mode string
}

func (narrow) Reaches() string { return "the pipe" }

func (narrow) Endless() bool { return true }

func (n narrow) Needs() string {
	if n.Mode == "" {
		return ""
	}
	return "the mode " + n.Mode
}

func (pipe) Open(settings json.RawMessage) (connector.Connector, error) {
	if strings.Contains(string(settings), "forbidden") {
		return nil, &abi.Error{Code: abi.InvalidArgument, Message: "that key is forbidden", Remedy: "use another one"}
	}
	switch {
	case strings.Contains(string(settings), "panics"):
		panic("the key panics")
	case strings.Contains(string(settings), "nothing"):
		return nil, nil
	}
	var n narrow
	err := json.Unmarshal(settings, &n)
	return n, err
}

const pipeChannels = `
variable "key" {
  default   = "k3y-k3y-k3y"
  sensitive = true
}
channel "in" {}
creature "c" {
  module = "builtin:relay"
  listen = [channel.in]
}
`

func loadConnectors(t *testing.T, text string) (*Recipe, string) {
	t.Helper()
	r, diags := Load(t.Context(), write(t, pipeChannels+text), Options{Connectors: []connector.Kind{pipe{}}})
	var b strings.Builder
	for i := range diags {
		b.WriteString(diags[i].Error() + "\n")
	}
	return r, b.String()
}

func TestConnectors(t *testing.T) {
	r, diags := loadConnectors(t, `
source "pipe" "p" {
  channel     = channel.in
  description = "the pipe"
  path        = "here"
  mode        = "slow"
  key         = var.key
  most        = "4KiB"
}
`)
	if r == nil {
		t.Fatal(diags)
	}
	list := r.Deployment().Connectors
	if len(list) != 1 {
		t.Fatalf("there are %+v", list)
	}
	c := list[0]
	var settings map[string]any
	if err := json.Unmarshal(c.Settings, &settings); err != nil {
		t.Fatal(err)
	}
	if path, _ := settings["path"].(string); c.Address() != "source.pipe.p" || c.Channel != "channel.in" || !strings.HasSuffix(path, "/here") || !strings.HasPrefix(path, "/") ||
		settings["mode"] != "slow" || settings["key"] != "k3y-k3y-k3y" || settings["most"] != 4096.0 {
		t.Errorf("the source is %+v with %v", c, settings)
	}
	for _, d := range r.Deployment().Declared {
		if d.Address == "source.pipe.p" {
			if v := d.Settings["key"]; !v.Sensitive || v.Text == "k3y-k3y-k3y" || d.Settings["mode"].Text != `"slow"` {
				t.Errorf("the plan shows %+v", d.Settings)
			}
			return
		}
	}
	t.Errorf("the plan has only %+v", r.Deployment().Declared)
}

func TestConnectorMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"source \"pipe\" \"p\" {\n channel = channel.in\n path = \"x\"\n mode = \"slow\"\n}\nsource \"pipe\" \"q\" {\n channel = channel.in\n path = \"y\"\n mode = \"slow\"\n}": "source.pipe.p needs the mode slow too",
		`source "pip" "p" { channel = channel.in }`:                                                          `Did you mean "pipe"`,
		`sink "pipe" "p" { channel = channel.in }`:                                                           "Unknown kind of sink",
		`source "pipe" "p" { path = "x" }`:                                                                   `"channel" is required`,
		`source "pipe" "p" { channel = channel.in }`:                                                         `"path" is required`,
		"source \"pipe\" \"p\" {\n channel = channel.in\n paht = \"x\"\n}":                                   `Did you mean "path"`,
		"source \"pipe\" \"p\" {\n channel = \"in\"\n path = \"x\"\n}":                                       "without quotes",
		"source \"pipe\" \"p\" {\n channel = channel.on\n path = \"x\"\n}":                                   "Unknown channel",
		"source \"pipe\" \"p\" {\n channel = creature.c\n path = \"x\"\n}":                                   "channel",
		"source \"pipe\" \"p\" {\n channel = channel.in\n path = \"\"\n}":                                    "Not a path",
		"source \"pipe\" \"p\" {\n channel = channel.in\n path = \"x\"\n mode = \"fats\"\n}":                 `Did you mean "fast"`,
		"source \"pipe\" \"p\" {\n channel = channel.in\n path = \"x\"\n mode = var.key\n}":                  "ensitive",
		"source \"pipe\" \"p\" {\n channel = channel.in\n path = \"x\"\n key = \"${var.key}forbidden\"\n}":   "That key is forbidden",
		"source \"pipe\" \"p\" {\n channel = channel.in\n path = \"x\"\n key = \"${var.key}panics\"\n}":      "The connector source.pipe.p panicked: the key panics",
		"source \"pipe\" \"p\" {\n channel = channel.in\n path = \"x\"\n key = \"${var.key}nothing\"\n}":     "The connector source.pipe.p returned neither a result nor an error",
		"source \"pipe\" \"p\" {\n channel = channel.in\n path = \"x\"\n key = \"k3y-k3y-in-text\"\n}":       "Secret in the recipe",
		"http \"h\" {\n allow = [\"https://example.com/**\"]\n headers = { Authorization = \"k3y-k3y\" }\n}": "Headers has the secret \"Authorization\"",
		"llm \"m\" {\n endpoint = \"https://example.com\"\n models = [\"m\"]\n key = \"k3y-k3y-in-text\"\n}": "Secret in the recipe",
		"source \"pipe\" \"p\" {\n channel = channel.in\n path = \"x\"\n more {}\n}":                         "more",
		"source \"pipe\" \"p\" {\n channel = channel.in\n path = \"x\"\n}\nsource \"other\" \"p\" {}":        "Declared twice",
		`source "pipe" { channel = channel.in }`:                                                             "name",
		"source \"pipe\" \"p\" {\n channel = channel.in\n path = \"x\"\n description = [1]\n}":               "Description must be a text",
	} {
		if r, diags := loadConnectors(t, text); r != nil || !strings.Contains(diags, want) || strings.Contains(diags, "k3y-k3y") {
			t.Errorf("%s\ngives\n%swant %s", text, diags, want)
		}
	}
}
