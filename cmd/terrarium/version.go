package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// versions describes the versions of this program and its parts.
func versions(ctx context.Context) string {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " (" + s.Value + ")"
			}
		}
	}
	engine := engineHere(ctx)
	return fmt.Sprintf("terrarium %s%s, ABI %d, %s, %s %s/%s, %s and %s as Go code",
		terrarium.Version, revision, abi.Version, sqlitestore.Library(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		engine.Kind, count(int64(len(engine.Translations)), "creature"))
}

func versionCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print versions",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(s.out, versions(cmd.Context()))
			return failWith(exitFailed, err)
		},
	}
}
