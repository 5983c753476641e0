package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

// graphFlags holds the flags of the graph command.
type graphFlags struct {
	recipe recipeFlags
	format string
	ids    bool
	at     string
}

func graphCommand(s streams) *cobra.Command {
	f := &graphFlags{}
	cmd := &cobra.Command{
		Use:   "graph RECIPE | DIR [SESSION]",
		Short: "Draw creatures, channels and their connections",
		Long: `graph draws the graphs of a recipe as they are before the first turn, or the graphs
of a session directory: all live ones, or that of one session. A session that has
ended is drawn as it was at its end, as long as its file exists. Another process may
be using the directory. With --at, the graphs of a session directory are drawn as they
were after an event, whose cursor terrarium events shows, or at a time.`,
		Example: `  terrarium graph examples/quickstart -o mermaid
  terrarium graph S | dot -Tsvg > graphs.svg
  terrarium graph S --at 2006-01-02T15:04:05Z`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.draw(cmd.Context(), s, args) },
	}
	f.recipe.add(cmd)
	cmd.Flags().StringVarP(&f.format, "format", "o", "dot", "dot, mermaid or json")
	cmd.Flags().StringVar(&f.at, "at", "", "draw the graphs as they were at a `MOMENT`: a cursor of an event, or a time (RFC 3339)")
	cmd.Flags().BoolVar(&f.ids, "ids", false, "show ids beside names")
	return cmd
}

// graphFormats lists the formats in which graphs are drawn.
var graphFormats = map[string]func(s streams, d *picture) error{
	"dot":     func(s streams, d *picture) error { return drawn(s, d.dot()) },
	"mermaid": func(s streams, d *picture) error { return drawn(s, d.mermaid()) },
	"json":    func(s streams, d *picture) error { return printJSON(s, d) },
}

func drawn(s streams, text string) error {
	_, err := io.WriteString(s.out, text)
	return failWith(exitFailed, err)
}

func (f *graphFlags) draw(ctx context.Context, s streams, args []string) error {
	write, known := graphFormats[f.format]
	if !known {
		return usage("-o %s: use dot, mermaid or json", f.format)
	}
	v, err := savedAt(ctx, args[0])
	if err != nil {
		return err
	}
	var d *picture
	switch {
	case v != nil:
		d, err = f.savedPicture(ctx, s, v, optional(args, 1))
		err = errors.Join(err, failWith(exitSession, v.Close()))
	case len(args) > 1:
		return usage("%s is not a session directory, so it has no session %s", args[0], args[1])
	case f.at != "":
		return usage("%s is not a session directory, so it has no past: leave out --at", args[0])
	default:
		d, err = f.recipePicture(ctx, s, args[0])
	}
	if err != nil {
		return err
	}
	d.ids = f.ids
	return write(s, d)
}

// recipePicture applies a recipe to a paused engine. Not even creature_init runs, as
// the drawing shows only what the recipe says.
func (f *graphFlags) recipePicture(ctx context.Context, s streams, path string) (d *picture, err error) {
	r, err := f.recipe.load(ctx, s, path)
	if err != nil {
		return nil, err
	}
	seed := uint64(1) // the same recipe always gives the same drawing
	t, err := terrarium.New(ctx, terrarium.Options{Seed: &seed, Paused: true})
	if err != nil {
		return nil, failWith(exitFailed, err)
	}
	defer func() { err = errors.Join(err, shut(ctx, t)) }()
	still := *r.Deployment()
	still.Creatures, still.Species = slices.Clone(still.Creatures), nil
	for i := range still.Creatures {
		still.Creatures[i].Stopped = true
	}
	if _, err := t.ApplyDeployment(ctx, &still); err != nil {
		return nil, applyExit(ctx, err)
	}
	graphs, err := t.Status("")
	if err != nil {
		return nil, failWith(exitFailed, err)
	}
	d = newPicture()
	for i := range graphs {
		for k := range graphs[i].Creatures {
			graphs[i].Creatures[k].State = journal.Running
		}
		d.addStatus(&graphs[i])
	}
	return d, nil
}

// savedPicture reads the live sessions of a directory, or one session by name.
func (f *graphFlags) savedPicture(ctx context.Context, s streams, v *sqlitestore.View, session string) (*picture, error) {
	if f.at != "" {
		return f.pastPicture(ctx, s, v, session)
	}
	list, err := v.Catalogue(ctx)
	if err != nil {
		return nil, failWith(exitSession, err)
	}
	wanted := liveSessions(list)
	if session != "" {
		info, err := namedSession(list, session)
		if err != nil {
			return nil, err
		}
		wanted = []journal.SessionInfo{info}
	}
	d := newPicture()
	for _, i := range wanted {
		saved, err := v.Saved(ctx, i.Session)
		if abi.CodeOf(err) == abi.NotFound && session == "" {
			continue // it has been cut in the meantime
		}
		if err != nil {
			return nil, failWith(exitSession, err)
		}
		d.addSaved(&saved)
	}
	return d, nil
}

// pastPicture reads the graphs of an earlier moment: all, or those that have become that of
// one session.
func (f *graphFlags) pastPicture(ctx context.Context, s streams, v *sqlitestore.View, session string) (*picture, error) {
	list, err := v.Catalogue(ctx)
	if err != nil {
		return nil, failWith(exitSession, err)
	}
	var only func(*journal.SessionInfo) bool
	if session != "" {
		info, err := namedSession(list, session)
		if err != nil {
			return nil, err
		}
		line := journal.LineOf(list, info.Session)
		only = func(i *journal.SessionInfo) bool { return line[i.Session] }
	}
	at, err := journal.ParseMoment(f.at, list)
	if err != nil {
		return nil, failWith(exitUsage, err)
	}
	graphs, problems, err := journal.GraphsAt(ctx, v, at, only)
	if err == nil && len(graphs) == 0 {
		err = errors.Join(problems...)
	} else {
		for _, p := range problems {
			showError(s.err, p)
		}
	}
	if err != nil {
		return nil, failWith(exitSession, err)
	}
	d := newPicture()
	for i := range graphs {
		d.addSaved(&graphs[i])
	}
	return d, nil
}

// addSaved adds a graph as its store has it.
func (d *picture) addSaved(g *journal.SavedGraph) {
	out := newDrawnGraph(g.Graph, g.Session)
	byAge := func(a, b journal.CreatureRow) int {
		return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.ID, b.ID))
	}
	states := statesOf(g)
	for _, c := range slices.SortedFunc(slices.Values(g.Creatures), byAge) {
		out.Creatures = append(out.Creatures, drawnCreature{c.ID, c.Name, c.Deployment, states[c.ID], c.Privileged, c.Root, c.Parent})
	}
	byBirth := func(a, b journal.ChannelRow) int { return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.ID, b.ID)) }
	for _, ch := range slices.SortedFunc(slices.Values(g.Channels), byBirth) {
		if ch.Inbox == "" {
			out.Channels = append(out.Channels, drawnChannel{ch.ID, ch.Name, ch.Description})
		}
	}
	byOrder := func(a, b journal.EdgeRow) int { return cmp.Compare(a.Order, b.Order) }
	for _, e := range slices.SortedFunc(slices.Values(g.Edges), byOrder) {
		out.Edges = append(out.Edges, drawnEdge{e.Creature, e.Channel, e.Direction.String(), e.Alias})
	}
	out.addWires(slices.SortedFunc(slices.Values(g.Wires), func(a, b journal.OutputWire) int { return cmp.Compare(a.Order, b.Order) }))
	d.add(out)
}

// addStatus adds a graph of a running engine.
func (d *picture) addStatus(g *inspect.GraphStatus) {
	out := newDrawnGraph(g.ID, g.Session)
	for i := range g.Creatures {
		c := &g.Creatures[i]
		out.Creatures = append(out.Creatures, drawnCreature{c.ID, c.Name, c.Deployment, c.State, c.Privileged, c.Root, c.Parent})
		for alias, channels := range c.Aliases.Listen {
			for _, ch := range channels {
				out.Edges = append(out.Edges, drawnEdge{c.ID, ch, journal.Listen.String(), alias})
			}
		}
		for alias, ch := range c.Aliases.Send {
			out.Edges = append(out.Edges, drawnEdge{c.ID, ch, journal.Send.String(), alias})
		}
	}
	for _, ch := range g.Channels {
		out.Channels = append(out.Channels, drawnChannel{ch.ID, ch.Name, ch.Description})
	}
	out.addWires(g.Wires)
	d.add(out)
}

// addWires adds output wires; those of one creature keep their order.
func (g *drawnGraph) addWires(wires []journal.OutputWire) {
	for i := range wires {
		w := &wires[i]
		g.Wires = append(g.Wires, drawnWire{w.ID, w.Name, w.From, w.To, w.When})
	}
}
