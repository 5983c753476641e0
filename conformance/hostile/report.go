package hostile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Report says how a module ended, and how it affected others.
type Report struct {
	// In is the operation that returned the error: compile, instantiate or a
	// function of the guest; creature_handle if there was no error.
	In   string
	Code abi.Code // of the error, or abi.OK
	Text string   // of the error
	// Took is the time from adding the creature, or from the start of its
	// turn, to the end, with the precision of events.
	Took time.Duration
	// Neighbours is the neighbours' traffic from before the attack until after
	// it.
	Neighbours Traffic
	// Before and After are the memory use of the process without an attack;
	// Peak is the most resident memory in between, 0 if unknown.
	Before, After Memory
	Peak          int64
	// Collection is the duration of the longest garbage collection meanwhile;
	// zero unless [Stage.CollectGarbage] is set.
	Collection time.Duration
	// Broken is the first failure of the engine after the attack, or nil.
	Broken error
}

// fail records the error of an operation.
func (r *Report) fail(err error) {
	r.Code, r.Text = abi.CodeOf(err), err.Error()
	var e *abi.Error
	if errors.As(err, &e) {
		r.In = e.Op
	}
}

// failedTurn records the error in the event of a failed turn.
func (r *Report) failedTurn(ev *journal.Event) error {
	var detail struct{ Code, Error string }
	if err := json.Unmarshal(ev.Payload, &detail); err != nil {
		return err
	}
	r.Code, _ = abi.ParseCode(detail.Code)
	r.Text = detail.Error
	r.In, _, _ = strings.Cut(detail.Error, ":")
	return nil
}

// maxText is the longest allowed error text, in bytes.
const maxText = 8 << 10

// Problems compares a report with the required end, and returns the
// differences: an empty list if the attack cost only what it may cost.
func (r *Report) Problems(m *Module, end *End) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if r.Code != end.Code || r.In != end.In {
		add("it ended with %v in %s, but must end with %v in %s: %s", r.Code, r.In, end.Code, end.In, shorten(r.Text))
	}
	for _, word := range end.Says {
		if !strings.Contains(r.Text, word) {
			add("the error does not say %q: %s", word, shorten(r.Text))
		}
	}
	if bad := unprintable(r.Text); bad != "" {
		add("the error %s: %q", bad, shorten(r.Text))
	}
	if n := r.Neighbours; n.Wrong != "" || n.Arrived != n.Sent {
		add("of %d messages of the neighbours %d arrived; %s", n.Sent, n.Arrived, n.Wrong)
	}
	if r.Broken != nil {
		add("the engine is damaged: %v", r.Broken)
	}
	allowed := m.Peak
	if allowed == 0 {
		allowed = DefaultPeak
	}
	allowed *= instrumented
	if used := r.Peak - r.Before.Resident; r.Peak > 0 && used > allowed {
		add("it made the process need %d MiB more; %d MiB are allowed", used>>20, allowed>>20)
	}
	if r.Before.exceededBy(r.After) {
		add("%d KiB are left of it on the heap, and %d KiB of it are still resident",
			(r.After.Heap-r.Before.Heap)>>10, (r.After.Resident-r.Before.Resident)>>10)
	}
	return list
}

// unprintable returns why a text cannot be shown unchanged, or "".
func unprintable(text string) string {
	strange := func(c rune) bool { return c != '\n' && unicode.IsControl(c) }
	switch {
	case len(text) > maxText:
		return fmt.Sprintf("has %d bytes", len(text))
	case !utf8.ValidString(text):
		return "is not UTF-8"
	case strings.ContainsFunc(text, strange):
		return "has control characters"
	}
	return ""
}

func shorten(text string) string {
	const most = 400
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
