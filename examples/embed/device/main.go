// Command device numbers lines with a creature of its own, and continues after a loss of power.
package main

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed47132306/terrarium"
)

//go:embed device.hcl numbers.wasm
var files embed.FS

func main() {
	if err := run(context.Background(), "session", os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "device:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, in io.Reader, out io.Writer) (err error) {
	t, err := terrarium.New(ctx, terrarium.Options{Dir: dir, FS: files, NoSearchIndex: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	applied, err := t.Apply(ctx, "fs:/device.hcl", terrarium.RecipeOptions{})
	if err != nil {
		return err
	}
	numbered, err := t.Read(applied.Channels["channel.numbered"], "printer", terrarium.ReaderOptions{FromStart: true})
	if err != nil {
		return err
	}
	defer numbered.Close()
	lines := bufio.NewScanner(in)
	for offset := uint64(1); lines.Scan(); offset++ { // lines of an earlier run are skipped
		o := terrarium.Outgoing{Payload: lines.Bytes(), Durable: true, Producer: "input", Offset: offset}
		if _, err := t.Send(ctx, applied.Channels["channel.lines"], o); err != nil {
			return err
		}
		if err := t.WaitIdle(ctx); err != nil {
			return err
		}
		for numbered.Pending() > 0 {
			line, err := numbered.Next(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s\n", line.Payload)
			numbered.Ack(line.Seq)
		}
	}
	return lines.Err()
}
