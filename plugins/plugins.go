// Package plugins holds the creatures that ship with terrarium, so that running
// one needs no guest toolchain. Recipes and operations name them builtin:NAME.
//
// Every creature has a folder with its source, its manifest and a README that
// describes its configuration. make guests builds the modules in the folders
// from the sources; tests prove them current. A creature that is a script has
// no module in its folder: it is the creature js with the script in it.
package plugins

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/abi/pack"
	"github.com/seed47132306/terrarium/internal/near"
)

//go:embed clerk/clerk.wasm echo/echo.wasm envoy/envoy.wasm foreman/foreman.wasm gate/gate.wasm join/join.wasm js/js.wasm operator/operator.wasm relay/relay.wasm select/select.wasm split/split.wasm tally/tally.wasm
var modules embed.FS

// agentFiles has the script of the creature agent, its manifest, and the
// descriptions of the group tools, which go generate ./cmd/internal/opsdoc writes.
//
//go:embed agent/agent.js agent/manifest.json agent/tools.json
var agentFiles embed.FS

// names are the embedded creatures, sorted.
var names = []string{"agent", "clerk", "echo", "envoy", "foreman", "gate", "join", "js", "operator", "relay", "select", "split", "tally"}

// onDemand holds, for each creature that is too large to embed, how to build
// it.
var onDemand = map[string]string{
	"digest": "build it with make digest and use plugins/digest/digest.wasm as the module",
}

// Names returns the names that [Get] knows, sorted. The caller owns the slice.
func Names() []string { return slices.Clone(names) }

// Get returns a copy of the module of that name. The error has the code
// [abi.NotFound] for a name that is not in [Names], and [abi.Unavailable] for a
// creature that has to be built first; its remedy says how, or which name was
// probably meant. Get may be called from any goroutine.
func Get(name string) ([]byte, error) {
	if name == "agent" {
		return agent()
	}
	if slices.Contains(names, name) {
		module, err := modules.ReadFile(name + "/" + name + ".wasm")
		if err != nil {
			return nil, &abi.Error{Code: abi.Internal, Op: "builtin", Message: fmt.Sprintf("the module of %s cannot be read", name), Err: err}
		}
		return module, nil
	}
	e := &abi.Error{Code: abi.NotFound, Op: "builtin", IDs: map[string]string{"module": name}}
	if remedy, ok := onDemand[name]; ok {
		e.Code = abi.Unavailable
		e.Message = fmt.Sprintf("the creature %s is too large to be part of this program", name)
		e.Remedy = remedy
		return nil, e
	}
	e.Message = fmt.Sprintf("there is no builtin creature %q", name)
	if near := nearest(name); near != "" {
		e.Remedy = fmt.Sprintf("did you mean %s?", near)
	} else {
		e.Remedy = "use one of " + strings.Join(names, ", ")
	}
	return nil, e
}

// agent returns the module of the creature agent.
func agent() ([]byte, error) {
	module, err := modules.ReadFile("js/js.wasm")
	if err != nil {
		return nil, err
	}
	var files [3][]byte
	for i, name := range []string{"tools.json", "agent.js", "manifest.json"} {
		if files[i], err = agentFiles.ReadFile("agent/" + name); err != nil {
			return nil, err
		}
	}
	// The descriptions are on the first line of the script, so that errors name the lines of
	// the file.
	script := slices.Concat([]byte("const groupTools = "), bytes.TrimSpace(files[0]), []byte("; "), files[1])
	if module, err = pack.Script(module, "agent.js", script); err != nil {
		return nil, err
	}
	return pack.Manifest(module, files[2])
}

// maxTypos is the most letters in which a name may differ from the one that
// was probably meant.
const maxTypos = 2

// nearest returns the name that was probably meant, or "".
func nearest(name string) string {
	best, found := maxTypos+1, ""
	name = strings.ToLower(name)
	for _, n := range names {
		if d := near.Distance(name, n); d < best && d < len(n)-1 {
			best, found = d, n
		}
	}
	return found
}
