// Command build builds the reference creatures of the kits into bin/kits, and prints
// where they are and what was left out.
//
//	go run ./sdk/internal/kits/build            all languages
//	go run ./sdk/internal/kits/build Rust Zig   some
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"

	"github.com/seed47132306/terrarium/sdk/internal/kits"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := build(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func build(ctx context.Context, languages []string) error {
	for _, k := range kits.All {
		if len(languages) > 0 && !slices.Contains(languages, k.Language) {
			continue
		}
		if missing := k.Missing("."); missing != "" {
			fmt.Printf("%s: left out, because %s is missing\n", k.Language, missing)
			continue
		}
		dir, err := k.Modules(ctx, ".")
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", k.Language, dir)
	}
	return nil
}
