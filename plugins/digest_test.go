package plugins_test

import (
	"context"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/plugins/internal/guestbuild"
)

// digest is built on demand, so its module is built here.
func TestDigest(t *testing.T) {
	if testing.Short() {
		t.Skip("building with the Go compiler takes long")
	}
	g, ok := guestbuild.ByName("digest")
	if !ok {
		t.Fatal("digest is not among the guests")
	}
	module, err := g.Build(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	m := compile(t, module)
	if info := m.Info(); info.Manifest == nil || info.Manifest.Name != "digest" || !info.Initializer {
		t.Fatalf("the module is %+v", info)
	}

	w := &world{channels: []string{"out"}}
	got := run(t, m, w,
		delivery{payload: "2026-11-20 10:01:02 remove cmake:amd64 3.25.1-1 <none>", headers: headers},
		delivery{payload: "\xff"},
		delivery{payload: ""},
		delivery{kind: abi.KindOutput, payload: "x: ERROR"},
		delivery{kind: abi.KindStart},
	)
	equal(t, got,
		sent("out", `{"time":"2026-11-20T10:01:02","level":"warn","action":"remove","subject":"cmake:amd64","from":"3.25.1-1","text":"remove cmake:amd64 3.25.1-1 <none>"}`, headers),
		sent("out", `{"level":"info","text":"�","base64":"/w=="}`, ""),
		sent("out", `{"level":"info","text":""}`, ""),
		sent("out", `{"level":"error","subject":"x","text":"ERROR"}`, ""),
	)

	w.config = map[string]any{"format": "dpkg"}
	equal(t, run(t, m, w, messages(awkward...)...), all("out", awkward)...)
	refuses(t, m, map[string]any{"format": "syslog"}, `format: use "auto" or "dpkg", not "syslog"`)

	// Go's heap settles: no turn leaks memory.
	const most = 16 << 20
	w.config = nil
	line := "2026-11-20 10:01:02 status installed libc6:amd64 2.36-9"
	records := play(t, m, w, false, messages(slices.Repeat([]string{line}, 10_000)...))
	if last := records[len(records)-1]; last.err != nil || last.memory > most {
		t.Errorf("after %d turns there are %d bytes of memory (%v)", len(records), last.memory, last.err)
	}
}
