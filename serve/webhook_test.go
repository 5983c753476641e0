package serve_test

import (
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/serve"
)

// TestWebhooksBeforeReady sends requests to a webhook before the recipes are applied, when
// they are applied, and when none of them declares it.
func TestWebhooksBeforeReady(t *testing.T) {
	dir := t.TempDir()
	var ready atomic.Bool
	w := start(t, serve.Options{Ready: ready.Load})
	expect := func(when string, status int) {
		t.Helper()
		r := w.request(http.MethodPost, "/hooks/it", "x", "Authorization", "Bearer 0123456789abcdef-secret")
		defer r.Body.Close()
		if r.StatusCode != status || (r.Header.Get("Retry-After") != "") != (status == http.StatusServiceUnavailable) {
			t.Errorf("%s, the status is %d, and Retry-After is %q; want %d", when, r.StatusCode, r.Header.Get("Retry-After"), status)
		}
	}
	apply := func(source string) {
		t.Helper()
		path := filepath.Join(dir, "it.hcl")
		text := source + "channel \"in\" {}\ncreature \"it\" {\n  module = \"builtin:tally\"\n  listen = [channel.in]\n}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := w.tr.Apply(t.Context(), path, terrarium.RecipeOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	expect("before anything", http.StatusServiceUnavailable)
	apply(`
variable "secret" {
  sensitive = true
  default   = "0123456789abcdef-secret"
}
source "webhook" "it" {
  channel = channel.in
  path    = "/hooks/it"
  secret  = var.secret
}
`)
	expect("while other recipes are not applied", http.StatusServiceUnavailable)
	ready.Store(true)
	expect("when all are applied", http.StatusAccepted)
	apply("")
	expect("when no recipe declares it", http.StatusNotFound)
}
