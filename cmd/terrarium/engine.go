package main

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/host/translation"
	"github.com/seed47132306/terrarium/plugins/native"
)

// translationsVariable turns translations off if it is translationsOff.
const (
	translationsVariable = "TERRARIUM_TRANSLATIONS"
	translationsOff      = "off"
)

// translations returns the creatures that this program has as Go code.
func translations() []translation.Code {
	if os.Getenv(translationsVariable) == translationsOff {
		return nil
	}
	return native.All()
}

// engineRecord says which engines run modules on this machine, and why.
type engineRecord struct {
	Kind   abi.Engine `json:"kind"` // compiler or interpreter
	Reason string     `json:"reason"`
	// Translations are the creatures that run as Go code in place of the engine, and
	// Without says why there are none.
	Translations []string `json:"translations"`
	Without      string   `json:"without,omitempty"`
}

// engineHere returns which engines run modules on this machine.
func engineHere(ctx context.Context) engineRecord {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	e := engineRecord{abi.EngineCompiler, "modules are compiled to machine code on " + platform, []string{}, ""}
	if !host.Compiles(ctx) {
		e.Kind, e.Reason = abi.EngineInterpreter, "there is no compiler for "+platform+", so creatures run many times slower"
	}
	for _, code := range translations() {
		if code.Exact(runtime.GOARCH) {
			e.Translations = append(e.Translations, code.Name)
		}
	}
	if os.Getenv(translationsVariable) == translationsOff {
		e.Without = fmt.Sprintf("%s is %s", translationsVariable, translationsOff)
	}
	return e
}
