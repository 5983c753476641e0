package project

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/abi/pack"
	"github.com/seed47132306/terrarium/plugins"
)

// PackScript returns a module that runs the script in a file, with the manifest in another
// file, or with one that has the name of the script if manifestPath is "".
func PackScript(path, manifestPath string) ([]byte, error) {
	script, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(script) == 0 {
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "pack", Message: path + " is empty", Remedy: "write export default { message(turn) { … } }"}
	}
	file := filepath.Base(path)
	manifest, err := json.Marshal(map[string]any{"name": strings.TrimSuffix(file, filepath.Ext(file)), "abi": []int{abi.Version}})
	if manifestPath != "" {
		manifest, err = os.ReadFile(manifestPath)
	}
	if err != nil {
		return nil, err
	}
	module, err := plugins.Get("js")
	if err != nil {
		return nil, err
	}
	if module, err = pack.Script(module, file, script); err != nil {
		return nil, err
	}
	return pack.Manifest(module, manifest)
}
