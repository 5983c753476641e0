package sdk_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/internal/guesttools"
)

// TestCMake builds a creature and its test program with the CMake files of the kits for C
// and C++, runs the test program, and runs the module against the reference cases.
func TestCMake(t *testing.T) {
	for _, c := range []struct{ language, cmakeName, kit, ending string }{
		{"C", "C", "c", "c"},
		{"C++", "CXX", "cpp", "cpp"},
	} {
		t.Run(c.language, func(t *testing.T) {
			requireTools(t, "cmake", "make", "clang-14", "clang++-14", "wasm-ld-14")
			kit, err := filepath.Abs(c.kit)
			if err != nil {
				t.Fatal(err)
			}
			toolchain, err := filepath.Abs("c/wasm32.cmake")
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "CMakeLists.txt"), fmt.Sprintf(`cmake_minimum_required(VERSION 3.16)
project(shout LANGUAGES %[1]s)
add_subdirectory(%[2]q terrarium)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL wasm32)
  add_executable(shout shout.%[3]s)
  target_link_libraries(shout terrarium_%[3]s)
else()
  enable_testing()
  add_executable(shout_test shout_test.%[3]s)
  target_link_libraries(shout_test terrarium_%[3]s)
  add_test(NAME shout COMMAND shout_test)
endif()
`, c.cmakeName, kit, c.ending))
			for _, name := range []string{"shout." + c.ending, "shout_test." + c.ending} {
				text, err := os.ReadFile(filepath.Join(kit, "examples", name))
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(dir, name), string(text))
			}
			command(t, dir, "cmake", "-S", ".", "-B", "native")
			command(t, dir, "cmake", "--build", "native")
			command(t, filepath.Join(dir, "native"), "ctest", "--output-on-failure", "--no-tests=error")
			command(t, dir, "cmake", "-S", ".", "-B", "wasm", "-DCMAKE_TOOLCHAIN_FILE="+toolchain)
			command(t, dir, "cmake", "--build", "wasm")
			cases, err := filepath.Glob("reference/cases/shout*.json")
			if err != nil || len(cases) == 0 {
				t.Fatalf("no cases of shout: %v", err)
			}
			for _, file := range cases {
				check(t, readCase(t, file), file, c.language, filepath.Join(dir, "wasm"))
			}
		})
	}
}

// requireTools skips the test if a tool is missing.
func requireTools(t *testing.T, tools ...string) {
	t.Helper()
	guesttools.Use(t)
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		guesttools.Missing(t, tool+" is missing")
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}
