// Command skipped says which checks of the test run had to be left out because a guest
// toolchain is missing, and how to get it, or because only root can do them. It ends
// well either way: the prebuilt guests are tested without any toolchain.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/seed47132306/terrarium/internal/ramdisk"
)

// checks are what needs a tool that a machine may lack.
var checks = []struct{ tool, check string }{
	{"wat2wasm", "that prebuilt guests written as text are current, byte for byte"},
	{"clang-14", "that prebuilt guests written in C are current, byte for byte"},
	{"wasm-ld-14", "that prebuilt guests written in C can be linked anew"},
}

func main() {
	var missing []string
	for _, c := range checks {
		if _, err := exec.LookPath(c.tool); err != nil {
			missing = append(missing, fmt.Sprintf("  %s (%s)", c.check, c.tool))
		}
	}
	if err := mount(); err != nil {
		fmt.Printf("Skipped, because only root can mount a small disk: what happens when a real disk is full (%v).\n", err)
	}
	if len(missing) == 0 {
		fmt.Println("No check of guests was skipped: the toolchains are installed.")
		return
	}
	fmt.Println("Skipped, because a guest toolchain is missing:")
	fmt.Println(strings.Join(missing, "\n"))
	fmt.Println("make toolchains installs them on Debian.")
}

// mount tries whether a small disk can be mounted.
func mount() error {
	dir, err := os.MkdirTemp("", "terrarium-skipped-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := ramdisk.Mount(dir, 1<<20); err != nil {
		return err
	}
	return ramdisk.Unmount(dir)
}
