package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// topFlags holds the flags of top.
type topFlags struct {
	heldCommand
	sort  string
	every time.Duration
	limit int
}

func topCommand(s streams) *cobra.Command {
	f := &topFlags{}
	cmd := &cobra.Command{
		Use:   "top DIR",
		Short: "Show what the creatures of a running session do, the busiest first",
		Long: `top shows, for each creature of a running session, its turns and fuel per second since the
last update, its waiting deliveries, its memory and its failures. On a terminal, it updates
the list until Ctrl-C. Elsewhere it prints the list once.`,
		Example: "  terrarium top S --sort waiting",
		Args:    arguments(1, 1),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.top(cmd.Context(), s, args[0]) },
	}
	formatFlag(cmd, &f.format)
	cmd.Flags().StringVar(&f.graph, "graph", "", "only the `GRAPH` with this id, or with a creature of this name")
	cmd.Flags().StringVar(&f.sort, "sort", "turns", "order of the list: by "+strings.Join(topOrders(), ", ")+" (highest first) or name")
	cmd.Flags().DurationVar(&f.every, "every", 2*time.Second, "time between updates")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "show at most this many creatures (default all, and on a terminal as many as fit)")
	choices(cmd, "sort", append(topOrders(), "name")...)
	return cmd
}

// minEvery bounds how often top asks, as each answer describes all creatures.
const minEvery = 10 * time.Millisecond

func (f *topFlags) top(parent context.Context, s streams, dir string) error {
	switch {
	case checkFormat(f.format) != nil:
		return checkFormat(f.format)
	case f.sort != "name" && !slices.Contains(topOrders(), f.sort):
		return usage("--sort %s: use %s or name", f.sort, strings.Join(topOrders(), ", "))
	case f.every < minEvery:
		return usage("--every %v: use at least %v", f.every, minEvery)
	case f.limit < 0:
		return usage("--limit %d: use a number above 0", f.limit)
	}
	if err := mustExist(dir); err != nil {
		return err
	}
	ctx, stop := untilSignal(parent)
	defer stop()
	conn, err := serve.DialSocket(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = &abi.Error{Code: abi.Unavailable, Message: "no process with a socket runs " + dir, Remedy: "start one with terrarium serve, run or resume; terrarium status shows what is saved"}
	}
	if err != nil {
		return failWith(exitSession, err)
	}
	h := remoteHolder(conn)
	err = f.watch(ctx, s, h, screenOf(s))
	return unlessInterrupted(ctx, errors.Join(operationExit(err), h.close(ctx)))
}

// screen is a terminal.
type screen struct {
	size func() (width, height int, err error)
}

// screenOf returns the terminal that standard output is, or nil.
func screenOf(s streams) *screen {
	file, ok := s.out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &screen{size: func() (int, int, error) { return term.GetSize(int(file.Fd())) }}
}

// watch shows the creatures until the context ends, or once without a screen.
func (f *topFlags) watch(ctx context.Context, s streams, h *holder, on *screen) error {
	before, err := f.sample(ctx, h)
	if err != nil {
		return err
	}
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // also if it is time for the next answer
			return nil
		}
		now, err := f.sample(ctx, h)
		switch {
		case err != nil && ctx.Err() != nil && gaveUp(err):
			return nil
		case err != nil:
			return err
		}
		v := viewOf(before, now, f.sort)
		before = now
		if on == nil || f.format == "json" {
			return f.once(s, v)
		}
		if err := f.redraw(s, v, on); err != nil {
			return err
		}
	}
}

// sample is an answer of status, and when it came.
type sample struct {
	operations.StatusResult
	at time.Time
}

func (f *topFlags) sample(ctx context.Context, h *holder) (*sample, error) {
	out := &sample{}
	if err := h.do(ctx, "status", operations.StatusArgs{Graph: f.graph}, &out.StatusResult); err != nil {
		return nil, err
	}
	out.at = time.Now()
	return out, nil
}

// topView is what top shows of two samples.
type topView struct {
	Graphs    int           `json:"graphs"`
	Count     int           `json:"count"`   // creatures, also those that are not listed
	Seconds   float64       `json:"seconds"` // between the samples
	Turns     float64       `json:"turns_per_second"`
	Fuel      float64       `json:"fuel_per_second"`
	Waiting   uint64        `json:"waiting"`
	Memory    int64         `json:"memory_bytes"`
	Approvals int           `json:"approvals"`
	Creatures []topCreature `json:"creatures"`
}

// topCreature is a line of top.
type topCreature struct {
	ID       terrarium.CreatureID `json:"creature"`
	Name     string               `json:"name"`
	Graph    terrarium.GraphID    `json:"graph"`
	State    string               `json:"state"`
	Turns    float64              `json:"turns_per_second"`
	Fuel     float64              `json:"fuel_per_second"`
	Waiting  uint64               `json:"waiting"`
	Memory   int64                `json:"memory_bytes"`
	Failures uint64               `json:"failures"` // since the engine started, like the rest
	Letters  uint64               `json:"dead_letters"`
	Total    uint64               `json:"turns"`
}

// orders are the columns by which top sorts.
var orders = map[string]func(a, b *topCreature) int{
	"turns":    func(a, b *topCreature) int { return cmp.Compare(b.Turns, a.Turns) },
	"fuel":     func(a, b *topCreature) int { return cmp.Compare(b.Fuel, a.Fuel) },
	"waiting":  func(a, b *topCreature) int { return cmp.Compare(b.Waiting, a.Waiting) },
	"memory":   func(a, b *topCreature) int { return cmp.Compare(b.Memory, a.Memory) },
	"failures": func(a, b *topCreature) int { return cmp.Compare(b.Failures, a.Failures) },
}

func topOrders() []string { return []string{"turns", "fuel", "waiting", "memory", "failures"} }

// viewOf compares two samples. A creature that the first one lacks has done everything since.
func viewOf(before, now *sample, order string) *topView {
	former := map[terrarium.CreatureID]inspect.CreatureStatus{}
	for _, g := range before.Graphs {
		for _, c := range g.Creatures {
			former[c.ID] = c
		}
	}
	v := &topView{Graphs: len(now.Graphs), Seconds: now.at.Sub(before.at).Seconds(), Creatures: []topCreature{}}
	for _, g := range now.Graphs {
		for i := range g.Creatures {
			c := &g.Creatures[i]
			was := former[c.ID].Counters
			line := topCreature{
				ID: c.ID, Name: c.Name, Graph: g.ID, State: string(c.State), Memory: c.MemoryBytes,
				Turns: rate(was.Turns, c.Counters.Turns, v.Seconds), Fuel: rate(was.Fuel, c.Counters.Fuel, v.Seconds),
				Failures: c.Counters.Failures, Letters: c.Counters.DeadLetters, Total: c.Counters.Turns,
			}
			for _, cursor := range c.Cursors {
				line.Waiting += cursor.Pending
			}
			v.Turns, v.Fuel, v.Waiting, v.Memory = v.Turns+line.Turns, v.Fuel+line.Fuel, v.Waiting+line.Waiting, v.Memory+line.Memory
			v.Approvals += c.Approvals
			v.Creatures = append(v.Creatures, line)
		}
	}
	v.Count = len(v.Creatures)
	slices.SortStableFunc(v.Creatures, func(a, b topCreature) int {
		by := 0
		if compare := orders[order]; compare != nil {
			by = compare(&a, &b)
		}
		return cmp.Or(by, cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return v
}

// rate is the growth of a counter per second. It is 0 if the counter has started over.
func rate(before, now uint64, seconds float64) float64 {
	if now <= before || seconds <= 0 {
		return 0
	}
	return float64(now-before) / seconds
}

// once shows a view that stays.
func (f *topFlags) once(s streams, v *topView) error {
	if f.limit > 0 && len(v.Creatures) > f.limit {
		v.Creatures = v.Creatures[:f.limit]
	}
	if f.format == "json" {
		return printJSON(s, v)
	}
	_, err := io.WriteString(s.text(), v.heading()+"\n\n"+v.lines(len(v.Creatures))+"\n")
	return failWith(exitFailed, err)
}

// Codes that control a terminal: go to the beginning, clear to the end of a line, clear what
// follows.
const (
	home      = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

// otherLines is the number of lines of a screen that are not creatures: the heading, the header
// of the table, what is left out, and the line of the cursor.
const otherLines = 6

// redraw shows a view in place of the one before. Lines that are too long are cut off, because
// they would push other lines off the screen.
func (f *topFlags) redraw(s streams, v *topView, on *screen) error {
	width, height, err := on.size()
	if err != nil {
		return failWith(exitFailed, fmt.Errorf("the size of the terminal: %w", err))
	}
	rows := min(max(height-otherLines, 1), len(v.Creatures))
	if f.limit > 0 {
		rows = min(rows, f.limit)
	}
	text := v.heading() + "\n\n" + v.lines(rows) + "\n"
	if left := len(v.Creatures) - rows; left > 0 {
		text += fmt.Sprintf("… and %s\n", count(left, "creature"))
	}
	var b bytes.Buffer
	b.WriteString(home)
	for line := range strings.Lines(printable(text)) {
		line = strings.TrimSuffix(line, "\n")
		if long := []rune(line); len(long) > width {
			line = string(long[:max(width, 0)])
		}
		b.WriteString(line + clearLine + "\n")
	}
	b.WriteString(clearRest)
	_, err = s.out.Write(b.Bytes())
	return failWith(exitFailed, err)
}

// heading sums up.
func (v *topView) heading() string {
	text := fmt.Sprintf("%s in %s; %s turns and %s fuel per second; %s; %s of memory",
		count(v.Count, "creature"), count(v.Graphs, "graph"), perSecond(v.Turns), perSecond(v.Fuel), count(int(v.Waiting), "waiting message"), size(v.Memory))
	if v.Approvals > 0 {
		text += "; " + count(v.Approvals, "question") + " for terrarium approvals"
	}
	return text
}

// lines returns a table of the first creatures.
func (v *topView) lines(n int) string {
	t := newTable()
	t.AppendHeader(table.Row{"creature", "state", "turns/s", "fuel/s", "waiting", "memory", "turns", "failures", "dead letters", "graph"})
	for _, c := range v.Creatures[:n] {
		t.AppendRow(table.Row{oneLine(c.Name), c.State, perSecond(c.Turns), perSecond(c.Fuel), c.Waiting, size(c.Memory), c.Total, c.Failures, c.Letters, c.Graph})
	}
	return t.Render()
}

// perSecond shows a rate with the precision that matters.
func perSecond(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 10:
		return fmt.Sprintf("%.1f", x)
	case x < 1e4:
		return fmt.Sprintf("%.0f", x)
	}
	for _, unit := range []string{"k", "M", "G"} {
		if x /= 1000; x < 1000 {
			return fmt.Sprintf("%.4g%s", x, unit)
		}
	}
	return fmt.Sprintf("%.4gT", x/1000)
}
