package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
	"github.com/spf13/cobra"
)

// heldCommand holds the flags of commands that act on a session directory, whether a
// process runs it or not.
type heldCommand struct {
	format   string
	despite  bool
	unjudged bool
	graph    string
	headers  []string
	to       bool
	wait     time.Duration
	check    int
	force    bool
}

// inHolder runs f with the holder of a session directory.
func (c *heldCommand) inHolder(cmd *cobra.Command, s streams, dir string, paused bool, f func(ctx context.Context, h *holder) error) error {
	if err := checkFormat(c.format); err != nil {
		return err
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	h, err := holderOf(ctx, s, dir, holding{paused, c.despite, c.unjudged})
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	err = f(ctx, h)
	return unlessInterrupted(ctx, errors.Join(operationExit(err), h.close(ctx)))
}

// operationExit adds an exit code to the error of an operation.
func operationExit(err error) error {
	if e := (*exit)(nil); errors.As(err, &e) {
		return err
	}
	switch abi.CodeOf(err) {
	case abi.OK:
		return nil
	case abi.InvalidArgument, abi.NotFound, abi.Ambiguous:
		return failWith(exitUsage, err)
	case abi.Storage:
		return failWith(exitSession, err)
	}
	return failWith(exitFailed, err)
}

func (c *heldCommand) add(cmd *cobra.Command) {
	formatFlag(cmd, &c.format)
	addDespite(cmd.Flags(), &c.despite)
}

func statusCommand(s streams) *cobra.Command {
	c := &heldCommand{}
	cmd := &cobra.Command{
		Use:   "status DIR",
		Short: "Describe the creatures of a session directory",
		Long: `status lists the creatures of a session directory, with their waiting deliveries and their
counters. If no process runs the directory, status reads the saved session, and counters
are 0.`,
		Example: "  terrarium status S",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.inHolder(cmd, s, args[0], true, func(ctx context.Context, h *holder) error { return c.status(ctx, s, h) })
		},
	}
	c.add(cmd)
	cmd.Flags().StringVar(&c.graph, "graph", "", "only the `GRAPH` with this id, or with a creature of this name")
	return cmd
}

func (c *heldCommand) status(ctx context.Context, s streams, h *holder) error {
	var result operations.StatusResult
	if err := h.do(ctx, "status", operations.StatusArgs{Graph: c.graph}, &result); err != nil {
		return err
	}
	if c.format == "json" {
		return printJSON(s, result)
	}
	t := newTable()
	t.AppendHeader(table.Row{"graph", "creature", "state", "waiting", "turns", "failures", "dead letters", "memory"})
	creatures, hibernated := 0, 0
	for _, g := range result.Graphs {
		creatures, hibernated = creatures+len(g.Creatures), hibernated+g.Hibernated
		for _, x := range g.Creatures {
			waiting := uint64(0)
			for _, cursor := range x.Cursors {
				waiting += cursor.Pending
			}
			t.AppendRow(table.Row{g.ID, x.Name, x.State, waiting, x.Counters.Turns, x.Counters.Failures, x.Counters.DeadLetters, x.MemoryBytes})
		}
	}
	for _, p := range result.Problems {
		showError(s.err, &abi.Error{Message: p.Message, Remedy: p.Remedy, IDs: p.IDs})
	}
	text := t.Render() + "\n"
	if hibernated > 0 {
		text += fmt.Sprintf("\n%d of %s hibernate until their next delivery\n", hibernated, count(creatures, "creature"))
	}
	text += connectorsText(result.Connectors)
	for _, stop := range stopsIn(result.Graphs) {
		text += "\n" + oneLine(stopLine(&stop)) + "\n"
	}
	if w := result.Wear; w != nil && h.running { // a directory that nothing runs was only opened for this
		text += fmt.Sprintf("\n%s of logs and %s written since %s; %s and %s an hour\n",
			count(w.Syncs, "sync"), size(w.WrittenBytes), w.Since, count(w.SyncsPerHour, "sync"), size(w.WrittenBytesPerHour))
	}
	_, err := io.WriteString(s.text(), text)
	return failWith(exitFailed, err)
}

func sendCommand(s streams) *cobra.Command {
	c := &heldCommand{}
	cmd := &cobra.Command{
		Use:   "send DIR CHANNEL [TEXT]",
		Short: "Send a message to a channel or creature of a session directory",
		Long: `send sends a message on a channel, or with --to to a creature. Without TEXT, the message
is read from standard input. If no process runs the directory, the message is saved, and
delivered when the session is resumed.`,
		Example: `  terrarium send S lines "a frog"
  terrarium send S --to census "report, please"`,
		Args: arguments(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.inHolder(cmd, s, args[0], true, func(ctx context.Context, h *holder) error { return c.send(ctx, s, h, args[1:]) })
		},
	}
	c.add(cmd)
	c.addMessage(cmd)
	cmd.Flags().BoolVar(&c.to, "to", false, "CHANNEL is the name or id of a creature")
	cmd.Flags().StringVar(&c.graph, "graph", "", "look up the channel in the `GRAPH` with this id, or with a creature of this name")
	return cmd
}

func (c *heldCommand) addMessage(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&c.headers, "header", nil, "add a header, as `NAME=VALUE`; may be repeated")
}

func (c *heldCommand) send(ctx context.Context, s streams, h *holder, args []string) error {
	payload, headers, err := c.message(s, args[1:])
	if err != nil {
		return err
	}
	var sent operations.SendResult
	if c.to {
		err = h.do(ctx, "send_to", operations.SendToArgs{Creature: args[0], Payload: payload, Headers: headers, Durable: true}, &sent)
	} else {
		err = h.do(ctx, "send", operations.SendArgs{Channel: args[0], Graph: c.graph, Payload: payload, Headers: headers, Durable: true}, &sent)
	}
	if err != nil {
		return err
	}
	if c.format == "json" {
		return printJSON(s, sent)
	}
	_, err = fmt.Fprintf(s.out, "Sent %s.\n", sent.Message)
	return failWith(exitFailed, err)
}

// message returns the payload and headers that the command line names.
func (c *heldCommand) message(s streams, text []string) (operations.Payload, map[string]string, error) {
	headers := map[string]string{}
	for _, h := range c.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, nil, usage("--header %s: write it as NAME=VALUE", h)
		}
		headers[name] = value
	}
	if len(text) > 0 {
		return operations.Payload(text[0]), headers, nil
	}
	payload, err := io.ReadAll(io.LimitReader(s.in, deploy.MaxMessage+1)) // a larger one is refused
	if err != nil {
		return nil, nil, failWith(exitFailed, fmt.Errorf("reading standard input: %w", err))
	}
	return payload, headers, nil
}

func requestCommand(s streams) *cobra.Command {
	c := &heldCommand{}
	cmd := &cobra.Command{
		Use:   "request DIR CREATURE [TEXT]",
		Short: "Send a request to a creature of a session directory, and print its reply",
		Long: `request sends a request to a creature and prints its reply. Without TEXT, the request is
read from standard input. If no process runs the directory, the session is restored as it
was, without its sources and sinks, and runs until the reply. Its policies are then not in
force, and stop_when does not count, so a session with either is refused.`,
		Example: `  terrarium request S census "report, please"`,
		Args:    arguments(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.inHolder(cmd, s, args[0], false, func(ctx context.Context, h *holder) error { return c.request(ctx, s, h, args[1:]) })
		},
	}
	c.add(cmd)
	c.addMessage(cmd)
	cmd.Flags().BoolVar(&c.unjudged, "without-policies", false, "run the session although its policies and stop_when blocks are not in force")
	cmd.Flags().DurationVar(&c.wait, "deadline", 30*time.Second, "how long to wait for the reply")
	return cmd
}

func (c *heldCommand) request(ctx context.Context, s streams, h *holder, args []string) error {
	payload, headers, err := c.message(s, args[1:])
	if err != nil {
		return err
	}
	if c.wait <= 0 {
		return usage("--deadline %v: use a time above 0, such as 30s", c.wait)
	}
	var reply operations.RequestResult
	err = h.do(ctx, "request", operations.RequestArgs{Creature: args[0], Payload: payload, Headers: headers, Deadline: operations.Duration(c.wait)}, &reply)
	if err != nil {
		return err
	}
	if c.format == "json" {
		return printJSON(s, reply)
	}
	_, err = fmt.Fprintln(s.text(), string(reply.Reply))
	return failWith(exitFailed, err)
}

func replaceCommand(s streams) *cobra.Command {
	c := &heldCommand{}
	cmd := &cobra.Command{
		Use:   "replace DIR CREATURE MODULE",
		Short: "Make a creature of a session directory continue with another module",
		Long: `replace gives a creature another module: a file, or builtin:NAME. The creature keeps its
state, cursors, timers and waiting deliveries. With --check, the module must first repeat
recorded turns of the creature with the same effects. A relative path is looked up from
the directory of this command.`,
		Example: "  terrarium replace S census census.wasm --check 100",
		Args:    arguments(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.inHolder(cmd, s, args[0], true, func(ctx context.Context, h *holder) error { return c.replace(ctx, s, h, args[1], args[2]) })
		},
	}
	c.add(cmd)
	cmd.Flags().IntVar(&c.check, "check", 0, "number of recorded turns to repeat first")
	cmd.Flags().BoolVar(&c.force, "force", false, "replace the module even if the check fails")
	return cmd
}

func (c *heldCommand) replace(ctx context.Context, s streams, h *holder, creature, module string) error {
	module, err := absoluteModule(module)
	if err != nil {
		return err
	}
	var r operations.ReplaceModuleResult
	if err := h.do(ctx, "replace_module", operations.ReplaceModuleArgs{Creature: creature, Module: module, Check: c.check, Force: c.force}, &r); err != nil {
		return err
	}
	if c.format == "json" {
		return printJSON(s, r)
	}
	_, err = fmt.Fprintf(s.text(), "%s continues with %s in place of %s.\n", creature, r.Module, cmp.Or(r.Former, r.FormerSHA256))
	return failWith(exitFailed, err)
}

// absoluteModule returns a module by a path that another process understands.
func absoluteModule(module string) (string, error) {
	if strings.HasPrefix(module, "builtin:") {
		return module, nil
	}
	path, err := filepath.Abs(module)
	return path, failWith(exitFailed, err)
}

func loginCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "login DIR",
		Short: "Print a link that logs a browser in to a running serve",
		Long: `login asks the process that serves a session directory for a link. A browser that opens it
is logged in, once and within ten minutes. The link has the address at which the process
listens; behind a proxy, replace it with the address of the proxy.`,
		Example: "  terrarium login S",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := mustExist(args[0]); err != nil {
				return err
			}
			conn, err := serve.DialSocket(cmd.Context(), args[0])
			if err != nil {
				return failWith(exitSession, &abi.Error{Code: abi.Unavailable, Message: "no process serves " + args[0], Remedy: "start one with terrarium serve --session " + args[0], Err: err})
			}
			h := remoteHolder(conn)
			var login struct{ Link string }
			err = h.do(cmd.Context(), "login-code", struct{}{}, &login)
			if err = errors.Join(operationExit(err), h.close(cmd.Context())); err != nil {
				return err
			}
			if login.Link == "" {
				return failWith(exitSession, &abi.Error{Code: abi.Unavailable, Message: "the process that runs " + args[0] + " has no page", Remedy: "end it, and start one with terrarium serve --session " + args[0]})
			}
			_, err = fmt.Fprintln(s.out, login.Link)
			return failWith(exitFailed, err)
		},
	}
	return cmd
}
