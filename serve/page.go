package serve

import (
	"bytes"
	"embed"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed page
var page embed.FS

// policy is the content security policy of the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// contentTypes are the types of the page's files. Those of the machine may differ.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json",
}

// pageFile serves a file of the page. The name of a file in an embed.FS cannot lead out of
// it.
func (h *Handler) pageFile(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	content, err := page.ReadFile("page/" + name)
	if err != nil {
		h.unknown(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache")
	header.Set("Content-Type", contentTypes[path.Ext(name)])
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}
