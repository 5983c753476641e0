package main

import (
	"context"

	"github.com/seed47132306/terrarium/cmd/internal/project"
)

// toolchainRecord is what doctor finds of the toolchain of a language.
type toolchainRecord struct {
	Language string `json:"language"`
	Version  string `json:"version,omitempty"`
	Missing  string `json:"missing,omitempty"` // the tool
	Remedy   string `json:"remedy,omitempty"`  // how to get it
}

// findToolchains looks for the tools that terrarium build would use.
func findToolchains(ctx context.Context) []toolchainRecord {
	var out []toolchainRecord
	for _, l := range project.All {
		t := l.Toolchain(ctx)
		if t == (project.Toolchain{}) {
			t.Version = "needs none"
		}
		out = append(out, toolchainRecord{Language: l.Title, Version: t.Version, Missing: t.Missing, Remedy: t.Get})
	}
	return out
}
