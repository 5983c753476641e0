// Command guests builds the creatures of package plugins.
//
//	go run ./plugins/internal/guests          build the embedded ones
//	go run ./plugins/internal/guests -check   build them elsewhere and compare
//	go run ./plugins/internal/guests digest   build one by name, beside its sources
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/seed47132306/terrarium/plugins/internal/guestbuild"
)

func main() {
	root := flag.String("root", ".", "the top folder of the repository")
	check := flag.Bool("check", false, "write nothing and fail if an embedded module is stale")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root, *check, flag.Args()); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "guests:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, check bool, names []string) error {
	build := func(g guestbuild.Guest) ([]byte, error) { return g.Build(ctx, root) }
	if check {
		return errors.Join(guestbuild.CheckSums(root), guestbuild.CheckBytes(root, build))
	}
	if len(names) == 0 {
		return guestbuild.Write(root, build)
	}
	for _, name := range names {
		g, ok := guestbuild.ByName(name)
		if !ok {
			return fmt.Errorf("no guest is named %q", name)
		}
		if g.Embedded {
			return fmt.Errorf("%s is embedded; build it with all the others, without a name", name)
		}
		module, err := build(g)
		if err != nil {
			return err
		}
		if err := os.WriteFile(g.Path(root), module, 0o644); err != nil {
			return err
		}
	}
	return nil
}
