package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// testPowerLoss runs the tests of sqlitestore that cut the power: beneath SQLite is a file layer
// that loses what was not synced.
func testPowerLoss(t *testing.T, root, dist string, emulator string) {
	binary := filepath.Join(t.TempDir(), "sqlitestore.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, "./sqlitestore")
	build.Dir = root
	parts := append(strings.Split(dist, "/"), "")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+parts[0], "GOARCH="+parts[1], "GOARM="+parts[2])
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the tests of sqlitestore for %s: %v\n%s", dist, err, out)
	}
	test := exec.CommandContext(t.Context(), emulator, binary, "-test.run", "PowerLoss", "-test.v")
	test.Dir = filepath.Join(root, "sqlitestore")
	test.Env = append(os.Environ(), "TERRARIUM_EVERY=")
	out, err := test.CombinedOutput()
	if passed := strings.Count(string(out), "--- PASS: Test"); err != nil || passed < 4 || strings.Contains(string(out), "--- SKIP: ") {
		t.Errorf("%d tests have passed: %v\n%s", passed, err, out)
	}
}
