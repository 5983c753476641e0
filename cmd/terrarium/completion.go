package main

import (
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func completionCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script with which a shell completes command lines",
		Long: `completion prints a script with which a shell completes commands, flags and files. If a
process runs a session directory, the names of its creatures and channels are completed too.`,
		Example: `  source <(terrarium completion bash)
  terrarium completion zsh > "${fpath[1]}/_terrarium"
  terrarium completion fish > ~/.config/fish/completions/terrarium.fish`,
		Args:      arguments(1, 1),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			switch root := cmd.Root(); args[0] {
			case "bash":
				if err = root.GenBashCompletionV2(s.out, true); err == nil {
					_, err = io.WriteString(s.out, withoutPackage)
				}
			case "zsh":
				err = root.GenZshCompletion(s.out)
			case "fish":
				err = root.GenFishCompletion(s.out, true)
			default:
				return usage("there is no completion for %s; use bash, zsh or fish", args[0])
			}
			return failWith(exitFailed, err)
		},
	}
}

// withoutPackage makes the script for bash work without the package bash-completion.
const withoutPackage = `
if ! declare -F _get_comp_words_by_ref >/dev/null; then
__terrarium_init_completion()
{
    COMPREPLY=()
    words=("${COMP_WORDS[@]}")
    cword=$COMP_CWORD
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD-1]}
}
fi
`

// choices completes a flag with some words.
func choices(cmd *cobra.Command, flag string, words ...string) {
	register(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// register sets how a flag is completed. It does nothing if the flag does not exist or has
// been registered before.
func register(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, f)
}

// complement adds completion to the arguments and flags of all commands, according to the
// placeholders in their help.
func complement(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		complement(sub)
	}
	if len(cmd.ValidArgs) == 0 && cmd.Runnable() {
		cmd.ValidArgsFunction = completeArgument
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { register(cmd, f.Name, completionOf(f)) })
}

// placeholders are the words of a usage that stand for an argument; the last one may be
// repeated.
func placeholders(use string) []string {
	words := strings.Fields(strings.NewReplacer("[", "", "]", "", "...", "", "…", "", " | ", "|").Replace(use))
	return words[1:]
}

// completeArgument completes an argument after the placeholder at its position.
func completeArgument(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	words := placeholders(cmd.Use)
	at := len(args)
	if repeated := strings.Contains(cmd.Use, "...") || strings.Contains(cmd.Use, "…"); at >= len(words) && repeated {
		at = len(words) - 1
	}
	if at >= len(words) || at < 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	switch words[at] {
	case "DIR":
		return nil, cobra.ShellCompDirectiveFilterDirs
	case "CREATURE", "CHANNEL", "ID":
		return namesIn(cmd.Context(), args[0], words[at]), cobra.ShellCompDirectiveNoFileComp
	}
	for _, kind := range strings.Split(words[at], "|") {
		if slices.Contains([]string{"RECIPE", "PLAN", "MODULE", "MANIFEST", "FILE", "DIR"}, kind) {
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// alternatives are the words at the end of a usage, if a flag takes one of them.
var alternatives = regexp.MustCompile(`(?:^|: )(\w+(?:(?:, | or )\w+)+)$`)

// completionOf completes the value of a flag, as its usage describes it.
func completionOf(f *pflag.Flag) cobra.CompletionFunc {
	placeholder, usage := pflag.UnquoteUsage(f)
	switch words := alternatives.FindStringSubmatch(usage); {
	case words != nil:
		return cobra.FixedCompletions(strings.Split(strings.ReplaceAll(words[1], " or ", ", "), ", "), cobra.ShellCompDirectiveNoFileComp)
	case f.Name == "kind":
		var names []cobra.Completion
		for _, k := range journal.EventKinds() {
			names = append(names, k.String())
		}
		return cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
	case f.Name == "creature", f.Name == "channel":
		return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return namesIn(cmd.Context(), args[0], strings.ToUpper(f.Name)), cobra.ShellCompDirectiveNoFileComp
		}
	case placeholder == "DIR":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case strings.Contains(placeholder, "FILE"), strings.Contains(placeholder, "PATH"), strings.Contains(placeholder, "MODULE"):
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	}
	return cobra.NoFileCompletions
}

// completionTime bounds how long a person at a prompt waits for a session.
const completionTime = time.Second

// harmless are the names that a shell takes as they are. Names may come from strangers.
var harmless = regexp.MustCompile(`^[\pL\pN._-]+$`)

// namesIn asks the process that runs a session directory what a placeholder may stand for.
// Without such a process there is nothing to offer.
func namesIn(ctx context.Context, dir, placeholder string) (out []cobra.Completion) {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	conn, err := serve.DialSocket(ctx, dir)
	if err != nil {
		return nil
	}
	h := remoteHolder(conn)
	defer h.close(ctx)
	if placeholder == "ID" {
		var waiting operations.ApprovalsResult
		if h.do(ctx, "approvals", operations.ApprovalsArgs{}, &waiting) != nil {
			return nil
		}
		for i := range waiting.Approvals {
			out = append(out, waiting.Approvals[i].ID)
		}
		return out
	}
	var status operations.StatusResult
	if h.do(ctx, "status", operations.StatusArgs{}, &status) != nil {
		return nil
	}
	var names []string
	for i := range status.Graphs {
		for j := range status.Graphs[i].Creatures {
			if placeholder == "CREATURE" {
				names = append(names, status.Graphs[i].Creatures[j].Name)
			}
		}
		for _, c := range status.Graphs[i].Channels {
			if placeholder == "CHANNEL" {
				names = append(names, c.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return !harmless.MatchString(n) })
}
