// Command skipped lists the checks that make test skipped: because they are long, because a
// guest toolchain or a shell is missing, with how to install it, or because only root can run
// them. It always succeeds: the prebuilt guests are tested without any
// toolchain, and make guests-check builds them again.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/seed47132306/terrarium/internal/ramdisk"
)

// checks lists the checks that need a tool the machine may lack.
var checks = []struct{ tool, check string }{
	{"wat2wasm", "that modules of tests written as text are current, byte for byte"},
	{"clang-14", "that modules of tests written in C are current, byte for byte"},
	{"wasm-ld-14", "that modules of tests written in C can be linked again"},
}

// shells are those whose completion the test completion.txtar tries as far as they are installed.
var shells = []string{"bash", "zsh", "fish"}

func main() {
	fmt.Println("Skipped, because they are long: the tests and cases that only make test-every and make test-kits run.")
	tellShells()
	var missing []string
	for _, c := range checks {
		if _, err := exec.LookPath(c.tool); err != nil {
			missing = append(missing, fmt.Sprintf("  %s (%s)", c.check, c.tool))
		}
	}
	if err := mount(); err != nil {
		fmt.Printf("Skipped, because only root can mount a small disk: the tests of a full disk (%v).\n", err)
	}
	if len(missing) == 0 {
		fmt.Println("No check of guests was skipped: the toolchains are installed.")
		return
	}
	fmt.Println("Skipped, because a guest toolchain is missing:")
	fmt.Println(strings.Join(missing, "\n"))
	fmt.Println("make toolchains installs them on Debian.")
}

// tellShells lists the shells whose completion was not tried.
func tellShells() {
	var missing []string
	for _, shell := range shells {
		if _, err := exec.LookPath(shell); err != nil {
			missing = append(missing, shell)
		}
	}
	if len(missing) > 0 {
		fmt.Printf("Skipped, because the shell is missing: that commands are completed in %s. Debian has a package of that name.\n", strings.Join(missing, " and "))
	}
}

// mount returns an error if a small disk cannot be mounted.
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
