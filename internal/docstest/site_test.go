package docstest

import (
	"encoding/json"
	"html"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	siteLink   = regexp.MustCompile(`<(?:a|link|script|img|source)\b[^>]*? (?:href|src|srcset)="([^"]*)"`)
	siteAnchor = regexp.MustCompile(` id="([^"]*)"`)
)

// TestSite follows every link of the site that make site has built, from its first page
// and from its index for searching, and holds that each page of the repository is reached.
func TestSite(t *testing.T) {
	dir := os.Getenv("TERRARIUM_SITE")
	if dir == "" {
		t.Skip("make site builds the site and checks it")
	}
	site := os.DirFS(dir)
	read := func(name string) string {
		text, err := fs.ReadFile(site, name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	anchors := map[string]map[string]bool{} // by page that was reached
	var visit func(from, to string)
	visit = func(from, to string) {
		u, err := url.Parse(html.UnescapeString(to))
		if err != nil || u.Scheme != "" {
			if err != nil || u.Scheme != "https" && u.Scheme != "http" {
				t.Errorf("%s: the link %q is of no use", from, to)
			}
			return
		}
		name := path.Join(path.Dir(from), u.Path)
		if u.Path == "" {
			name = from
		}
		if info, err := fs.Stat(site, name); err != nil || info.IsDir() || strings.HasPrefix(u.Path, "/") {
			t.Errorf("%s: the link %q leads nowhere", from, to)
			return
		}
		if path.Ext(name) != ".html" {
			return
		}
		if anchors[name] == nil {
			anchors[name] = map[string]bool{"": true}
			text := read(name)
			for _, m := range siteAnchor.FindAllStringSubmatch(text, -1) {
				id := html.UnescapeString(m[1])
				if anchors[name][id] {
					// A heading with the id of a part of the site would get its style.
					t.Errorf("%s: two elements have the id %q", name, id)
				}
				anchors[name][id] = true
			}
			for _, m := range siteLink.FindAllStringSubmatch(text, -1) {
				visit(name, m[1])
			}
		}
		if !anchors[name][u.Fragment] {
			t.Errorf("%s: the page of the link %q has no such heading", from, to)
		}
	}
	visit("index.html", "index.html")
	reached := slices.Sorted(maps.Keys(anchors))

	var sections []struct{ Title, Heading, URL, Text string }
	text := strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(read("search-index.js"), "window.searchIndex =")), ";")
	if err := json.Unmarshal([]byte(text), &sections); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, s := range sections {
		visit("search-index.js", s.URL)
		found[strings.SplitN(s.URL, "#", 2)[0]] = s.Title != ""
	}
	for _, p := range pages(t) {
		if path.Ext(p.name) != ".md" {
			continue
		}
		name := strings.TrimSuffix(p.name, ".md") + ".html"
		if path.Base(p.name) == "README.md" {
			name = path.Join(path.Dir(p.name), "index.html")
		}
		if !slices.Contains(reached, name) || !found[name] {
			t.Errorf("%s of the site is not reached, or not in the index for searching", name)
		}
	}
	err := fs.WalkDir(site, ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".html" && !slices.Contains(reached, name) {
			t.Errorf("%s of the site cannot be reached from its first page", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
