package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/recipes"
)

// blocks is a recipe of 1,000 blocks: creatures, channels, policies with scripts, and
// limits.
func blocks() string {
	var b strings.Builder
	b.WriteString("variable \"strictness\" { default = 3 }\n")
	for i := range 250 {
		fmt.Fprintf(&b, `
channel "c%d" { description = "channel %d" }
creature "w%d" {
  module = "builtin:relay"
  listen = [channel.c%d]
  send   = { next = channel.c%d }
  config = { strictness = var.strictness + %d, name = "worker ${%d}" }
  limits {
    memory   = "16MiB"
    deadline = "200ms"
  }
}
policy "send" "p%d" {
  channel = channel.c%d
  match   = event.size > %d
  run     = <<-JS
    (event, ctx) => {
      if (event.payload.includes("secret")) return deny(`+"`no secrets for ${event.channel}`"+`);
    }
  JS
}
`, i, i, i, i, (i+1)%250, i, i, i, i, i)
	}
	return b.String()
}

// BenchmarkAnswers measures how long an editor waits: each request follows a change of
// the text, as when typing.
func BenchmarkAnswers(b *testing.B) {
	text := blocks()
	if n := strings.Count(text, "{\n") + strings.Count(text, "\" }"); n < 1000 {
		b.Fatalf("the recipe has %d blocks", n)
	}
	uri := uriOf(b.TempDir() + "/large.hcl")
	line := strings.Count(text[:strings.Index(text, `creature "w200"`)], "\n")
	at := fmt.Sprintf(`{"textDocument":{"uri":%q},"position":{"line":%d,"character":%%d},"newName":"renamed","context":{"includeDeclaration":true}}`, uri, line+2)
	for _, method := range []string{"hover", "completion", "definition", "references", "rename", "documentSymbol", "formatting"} {
		b.Run(method, func(b *testing.B) {
			var out bytes.Buffer
			s := newServer(Options{Validate: nothing}, &out)
			defer s.timer.Stop()
			b.ReportAllocs()
			s.initialized = true
			if err := s.didOpen(json.RawMessage(fmt.Sprintf(`{"textDocument":{"uri":%q,"version":1,"text":%s}}`, uri, quote(text)))); err != nil {
				b.Fatal(err)
			}
			// The place is in the name of a channel; where it is completed, behind the dot.
			params := json.RawMessage(fmt.Sprintf(at, len("  listen = [channel.")+map[string]int{"completion": 0}[method]))
			change := json.RawMessage(fmt.Sprintf(`{"textDocument":{"uri":%q,"version":2},"contentChanges":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":0}},"text":" "}]}`, uri))
			for b.Loop() {
				if err := s.didChange(change); err != nil {
					b.Fatal(err)
				}
				w := &work{message: &message{ID: json.RawMessage("1"), Method: "textDocument/" + method, Params: params}, ctx: b.Context(), done: func() {}}
				if err := s.handle(w); err != nil {
					b.Fatal(err)
				}
			}
			if bytes.Contains(out.Bytes(), []byte(`"error"`)) || bytes.Contains(out.Bytes(), []byte(`"result":null`)) {
				b.Fatalf("there is no answer: %.400s", out.Bytes())
			}
		})
	}
}

// BenchmarkFindings measures a validation without modules after a change.
func BenchmarkFindings(b *testing.B) {
	dir := b.TempDir()
	path := dir + "/large.hcl"
	text := blocks()
	b.ReportAllocs()
	for b.Loop() {
		r, diags := recipes.Load(context.Background(), path, recipes.Options{Unsaved: map[string][]byte{path: []byte(text)}, Tests: true})
		if r == nil {
			b.Fatal(diags)
		}
	}
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}
