package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/operations"
)

// policiesName names the internal command that runs policies with isolation =
// "process" for another terrarium process.
const policiesName = "serve-policies"

func servePoliciesCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use: policiesName, Hidden: true, Args: cobra.NoArgs, Short: "Run policies for another process",
		RunE: func(*cobra.Command, []string) error { return terrarium.ServePolicies(s.in, s.out) },
	}
}

func policiesCommand(s streams) *cobra.Command {
	c := &heldCommand{}
	cmd := &cobra.Command{
		Use:   "policies DIR",
		Short: "List the policies of a session directory that is in use",
		Long: `policies lists the policies that judge what creatures do, with the events that each
judges and its place in the recipe. The process that runs the directory answers. Without
such a process no policy is in force. To check the policies of a recipe, use terrarium
validate.`,
		Example: "  terrarium policies S",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.inHolder(cmd, s, args[0], true, func(ctx context.Context, h *holder) error { return c.policies(ctx, s, h) })
		},
	}
	c.add(cmd)
	return cmd
}

func (c *heldCommand) policies(ctx context.Context, s streams, h *holder) error {
	var result operations.PoliciesResult
	if err := h.do(ctx, "policies", operations.PoliciesArgs{}, &result); err != nil {
		return err
	}
	if c.format == "json" {
		return printJSON(s, result)
	}
	if !h.running {
		_, err := io.WriteString(s.err, "No process runs the session, so no policy judges what its creatures do.\n")
		return failWith(exitFailed, err)
	}
	t := newTable()
	t.AppendHeader(table.Row{"policy", "event", "judges", "where", "recipe", "script"})
	for i := range result.Policies {
		p := &result.Policies[i]
		judges := slices.Concat(p.Channels, p.Creatures, p.Species)
		if len(judges) == 0 {
			judges = []string{"all"}
		}
		how := string(p.Event)
		if p.Enforce == "audit" {
			how += ", audit"
		}
		t.AppendRow(table.Row{printable(p.Name), how, printable(strings.Join(judges, ", ")), printable(p.Where), printable(p.Recipe), p.Hash[:12]})
	}
	_, err := fmt.Fprintln(s.text(), t.Render())
	return failWith(exitFailed, err)
}

// policyProcess returns the command that starts such a process, or nil if the path of
// this program is unknown.
func policyProcess() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, policiesName}
}

// policyFailures shows the policies that failed, and returns an error if there are any.
func policyFailures(s streams, t *terrarium.Terrarium) error {
	failures := t.PolicyFailures()
	if len(failures) == 0 {
		return nil
	}
	for _, f := range failures {
		showError(s.err, f)
	}
	what := "1 policy has"
	if n := len(failures); n > 1 {
		what = fmt.Sprintf("%d policies have", n)
	}
	return failWith(exitFailed, errors.New(what+" failed; on_error decided instead"))
}
