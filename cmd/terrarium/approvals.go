package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/user"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/operations"
	"github.com/spf13/cobra"
)

func approvalsCommand(s streams) *cobra.Command {
	c := &heldCommand{}
	var content string
	cmd := &cobra.Command{
		Use:   "approvals DIR",
		Short: "List what waits for approval in a session directory",
		Long: `approvals lists the open questions of policies, on whose answers turns wait: what
would happen, which policy asks, and when the deadline decides. approve and deny answer a
question. The list may show only a part of a long message; --content writes the whole
content of one question.`,
		Example: "  terrarium approvals S\n  terrarium approvals S --content 0b2c…-41 > message.txt",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.inHolder(cmd, s, args[0], true, func(ctx context.Context, h *holder) error {
				if content != "" {
					return c.approvalContent(ctx, s, h, content)
				}
				return c.approvals(ctx, s, h)
			})
		},
	}
	c.add(cmd)
	cmd.Flags().StringVar(&content, "content", "", "write the whole content of the question with this `ID`; with -o json, also its headers")
	return cmd
}

func (c *heldCommand) approvals(ctx context.Context, s streams, h *holder) error {
	var result operations.ApprovalsResult
	if err := h.do(ctx, "approvals", operations.ApprovalsArgs{}, &result); err != nil {
		return err
	}
	if c.format == "json" {
		return printJSON(s, result)
	}
	for i := range result.Approvals {
		a := &result.Approvals[i]
		text := fmt.Sprintf("%s  %s  %s\n  policy %s (%s): %s\n  since %s, %s; deliveries behind it: %d\n%s  %s\n",
			a.ID, oneLine(a.Name), oneLine(a.Subject), oneLine(a.Policy), oneLine(a.Where), oneLine(a.Reason), a.Since,
			answerByDeadline(a, time.Now(), h.running), a.Behind, headerLines(a), contentLine(a))
		if _, err := io.WriteString(s.text(), text); err != nil {
			return failWith(exitFailed, err)
		}
	}
	return nil
}

// answerByDeadline says what happens to a question without an answer. A process that runs the
// session decides at the deadline, by its clock. If none runs, the question is still listed
// afterwards, but can no longer be answered.
func answerByDeadline(a *operations.ApprovalRecord, now time.Time, running bool) string {
	deadline, err := time.Parse(time.RFC3339Nano, a.Deadline)
	if err == nil && !running && !now.Before(deadline) {
		return fmt.Sprintf("the deadline has passed at %s: it is %s when the session is resumed", a.Deadline, a.Otherwise)
	}
	return fmt.Sprintf("%s at %s unless you decide", a.Otherwise, a.Deadline)
}

// approvalContent writes what one question is about, byte by byte.
func (c *heldCommand) approvalContent(ctx context.Context, s streams, h *holder, id string) error {
	var result operations.ApprovalContentResult
	if err := h.do(ctx, "approval_content", operations.ApprovalContentArgs{Approval: id}, &result); err != nil {
		return err
	}
	if c.format == "json" {
		return printJSON(s, result)
	}
	_, err := s.out.Write(result.Content)
	return failWith(exitFailed, err)
}

// headerLines shows the headers of a message that would be sent, each in a line.
func headerLines(a *operations.ApprovalRecord) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		text += fmt.Sprintf("  %s: %s\n", oneLine(name), oneLine(a.Headers[name]))
	}
	if a.MoreHeaders > 0 {
		text += fmt.Sprintf("  … and %s\n", count(a.MoreHeaders, "header"))
	}
	return text
}

// contentLine shows what would happen, in one line, so that no content looks like another
// question.
func contentLine(a *operations.ApprovalRecord) string {
	text := string(a.Content)
	if !utf8.ValidString(text) {
		text = fmt.Sprintf("%d bytes that are not text", a.Size)
		if a.ContentHash != "" {
			text += ", SHA-256 " + a.ContentHash
		}
	} else if a.Size > len(a.Content) {
		text += fmt.Sprintf("… (%d bytes, SHA-256 %s)", a.Size, a.ContentHash)
	}
	return oneLine(text)
}

// decision holds the flags of approve and deny.
type decision struct {
	heldCommand
	reason, by string
}

func approveCommand(s streams) *cobra.Command {
	return decideCommand(s, "approve", "Approve what waits in a session directory", `approve approves what policies ask about; approvals lists the questions. When all questions
about a turn are answered, the turn runs again, and what was approved takes effect. If no
process runs the directory, the turn runs when the session is resumed.`)
}

func denyCommand(s streams) *cobra.Command {
	return decideCommand(s, "deny", "Deny what waits in a session directory", `deny denies what policies ask about; approvals lists the questions. The creature continues
as if the policy had denied the message or call. If no process runs the directory, it
continues when the session is resumed.`)
}

func decideCommand(s streams, name, short, long string) *cobra.Command {
	d := &decision{}
	cmd := &cobra.Command{
		Use:     name + " DIR ID...",
		Short:   short,
		Long:    long,
		Example: "  terrarium " + name + ` S 0b2c…-41 --reason "as agreed"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage("an argument is missing; usage: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.inHolder(cmd, s, args[0], true, func(ctx context.Context, h *holder) error { return d.decide(ctx, s, h, name, args[1:]) })
		},
	}
	d.add(cmd)
	cmd.Flags().StringVar(&d.reason, "reason", "", "`TEXT` with the reason, for the history")
	cmd.Flags().StringVar(&d.by, "by", "", "`NAME` of the operator, for the history (default your user name)")
	return cmd
}

// decide answers the questions, as far as possible.
func (d *decision) decide(ctx context.Context, s streams, h *holder, operation string, ids []string) error {
	if d.by == "" {
		if u, err := user.Current(); err == nil {
			d.by = u.Username
		}
	}
	done := []operations.DecideResult{}
	var failures []error
	for _, id := range ids {
		var r operations.DecideResult
		if err := h.do(ctx, operation, operations.DecideArgs{Approval: id, Reason: d.reason, By: d.by}, &r); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", id, err))
			continue
		}
		done = append(done, r)
	}
	err := errors.Join(failures...)
	if d.format == "json" {
		return errors.Join(printJSON(s, map[string]any{"decided": done}), err)
	}
	for _, r := range done {
		text := fmt.Sprintf("%s of %s was %s.\n", r.Approval, r.Name, r.Decision)
		if !h.running {
			text = fmt.Sprintf("%s of %s was %s; it takes effect when the session is resumed.\n", r.Approval, r.Name, r.Decision)
		}
		if _, werr := io.WriteString(s.text(), text); werr != nil {
			return errors.Join(failWith(exitFailed, werr), err)
		}
	}
	return err
}
