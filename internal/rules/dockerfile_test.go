package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDockerfileNamesWhatExists proves that the image copies files that the repository or the
// stage before has, starts the binary that it copies, and builds that as make dist does.
func TestDockerfileNamesWhatExists(t *testing.T) {
	text := strings.ReplaceAll(read(t, filepath.Join(root(t), "contrib", "Dockerfile")), "\\\n", " ")
	var built string            // what the build stage makes
	copied := map[string]bool{} // paths of the image
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		switch fields[0] {
		case "RUN":
			built += line
		case "COPY":
			paths := slices.DeleteFunc(fields[1:], func(s string) bool { return strings.HasPrefix(s, "--") })
			fromBuild := strings.Contains(line, "--from=build")
			for _, path := range paths[:len(paths)-1] {
				if fromBuild && !slices.Contains(strings.Fields(built), path) {
					t.Errorf("the build stage makes no %s", path)
				}
				if _, err := os.Stat(filepath.Join(root(t), path)); !fromBuild && err != nil {
					t.Error(err)
				}
			}
			copied[paths[len(paths)-1]] = true
		}
	}
	build := regexp.MustCompile(`CGO_ENABLED=0.*? build (.*?) -o .* (\./\S+)`)
	makefile := strings.ReplaceAll(read(t, filepath.Join(root(t), "Makefile")), "\\\n", " ")
	_, dist, _ := strings.Cut(makefile, "\n$(DIST:%=bin/dist/%):")
	here, there := build.FindStringSubmatch(built), build.FindStringSubmatch(dist)
	if here == nil || there == nil || !slices.Equal(here[1:], there[1:]) {
		t.Errorf("the image is built with %q, and make dist builds with %q", here, there)
	}
	entry := regexp.MustCompile(`(?m)^ENTRYPOINT \["([^"]*)"\]$`).FindStringSubmatch(text)
	if entry == nil || !copied[entry[1]] {
		t.Errorf("the image starts %q, and has %v", entry, copied)
	}
	home := regexp.MustCompile(`(?m)^ENV HOME=(\S+)`).FindStringSubmatch(text)
	if home == nil || !strings.Contains(text, "--chown=65532:65532 "+home[1]+" "+home[1]) || !strings.Contains(text, "\nUSER 65532:65532\n") {
		t.Errorf("the user of the image cannot write to its home %q", home)
	}
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, filepath.Join(root(t), "go.mod")))
	if language == nil || !strings.Contains(text, "FROM golang:"+language[1]+" ") {
		t.Errorf("the image is built with another version of Go than %v", language)
	}
}
