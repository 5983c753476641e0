package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
)

// policiesName names the internal command that runs policies with isolation =
// "process" for another terrarium process.
const policiesName = "policies"

func policiesCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use: policiesName, Hidden: true, Args: cobra.NoArgs, Short: "Run policies for another process",
		RunE: func(*cobra.Command, []string) error { return terrarium.ServePolicies(s.in, s.out) },
	}
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
