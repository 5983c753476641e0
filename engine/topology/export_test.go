package topology

import (
	"errors"
	"fmt"
	"slices"
)

// CheckInternals checks internal state: positions, counters and indexes.
func (s *State) CheckInternals() error {
	if s.torn {
		return errors.New("a graph is still torn")
	}
	var creatures, channels, links int
	for g := range s.graphs.values() {
		id := g.id
		if s.graphs.get(id) != g || s.ended.get(id) != nil {
			return fmt.Errorf("graph %s is filed as %s", g.id, id)
		}
		creatures += g.size()
		channels += g.channels.size
		if g.creatureNames.count != g.size() || g.channelNames.count != g.channels.size {
			return fmt.Errorf("graph %s: names do not match members", id)
		}
		for r := range g.elders {
			if err := g.checkElders(rank(r)); err != nil {
				return err
			}
		}
		for i, ch := range slices.Collect(g.channels.all()) {
			if ch.graph != g || ch.at != i || s.channels.get(ch.id) != ch || g.channelNames.get(ch.name) != ch {
				return fmt.Errorf("graph %s: channel %s is misfiled", id, ch.id)
			}
			links += len(ch.links)
			if err := ch.checkLinks(); err != nil {
				return err
			}
		}
	}
	if creatures != s.creatures.count || channels != s.channels.count || links != s.linkCount {
		return fmt.Errorf("%d creatures, %d channels and %d links are filed as %d, %d and %d",
			creatures, channels, links, s.creatures.count, s.channels.count, s.linkCount)
	}
	for c := range s.creatures.values() {
		if err := c.checkLinks(s); err != nil {
			return err
		}
		if err := c.checkTree(); err != nil {
			return err
		}
	}
	for ch := range s.channels.values() {
		if err := ch.checkTree(); err != nil {
			return err
		}
	}
	return nil
}

// TiedBy reports whether one channel leads from one creature to the other, and
// [Disconnect] would remove a link of the spanning tree.
func (s *State) TiedBy(from, to CreatureID) bool {
	sends, hears := s.creatures.get(from), s.creatures.get(to)
	channels := 0
	tied := false
	for _, a := range hears.links {
		sent := sends.link(a.link.channel)
		if sent != nil && sent.send.on() && a.link.listen.on() {
			channels++
			tied = a.link.channel.senders == 1 && a.link.tied
		}
	}
	return tied && channels == 1
}

// checkTree checks the stop of n and those of its links.
func (n *node) checkTree() error {
	stops := []*stop{&n.stop}
	for i, a := range n.links {
		l := a.link
		if a.to != l.far(n) {
			return fmt.Errorf("link %d does not lead where it says", i)
		}
		if *l.position(n) != i || l.tied != (i < n.trees) {
			return fmt.Errorf("link %d of %d is misplaced", i, len(n.links))
		}
		if l.tied {
			stops = append(stops, &l.there, &l.back)
		}
		if l.far(n).stop.tour() != n.stop.tour() {
			return fmt.Errorf("link %d leads to another tree", i)
		}
	}
	if n.stop.spare != (len(n.links) > n.trees) || n.stop.node != n {
		return fmt.Errorf("stop of a node with %d of %d links in the tree is %+v", n.trees, len(n.links), n.stop)
	}
	for _, s := range stops {
		for _, under := range []*stop{s.left, s.right} {
			if under != nil && (under.up != s || under.priority > s.priority) {
				return fmt.Errorf("stop %+v is above %+v", s, under)
			}
		}
		if s.spareLeft != (s.left != nil && s.left.spares()) || s.spareRight != (s.right != nil && s.right.spares()) {
			return fmt.Errorf("stop %+v is wrong about the spare ones beneath", s)
		}
		if s.tour() != n.stop.tour() {
			return fmt.Errorf("stop %+v is astray", s)
		}
	}
	return nil
}

func (g *graph) checkElders(r rank) error {
	items := slices.Collect(g.elders[r].items.all())
	for i, c := range items {
		if c.at[r] != i || c.graph != g || i > 0 && elder(c, items[(i-1)/2]) {
			return fmt.Errorf("graph %s: creature %s is misplaced", g.id, c.id)
		}
	}
	for c := range g.elders[everyone].items.all() {
		belongs := [ranks]bool{true, c.privileged, c.root}[r]
		if belongs != slices.Contains(items, c) || g.creatureNames.get(c.name) != c {
			return fmt.Errorf("graph %s: creature %s is misfiled", g.id, c.id)
		}
	}
	return nil
}

func (c *creature) checkLinks(s *State) error {
	sends := 0
	for i, a := range c.links {
		l := a.link
		if l.creature != c || l.atCreature != i || c.link(l.channel) != l {
			return fmt.Errorf("creature %s: link %d is misfiled", c.id, i)
		}
		if l.send.on() {
			sends++
			if c.sending(l.send.alias) != l {
				return fmt.Errorf("creature %s: alias %s is misfiled", c.id, l.send.alias)
			}
		}
	}
	if c.index != nil && sends != c.index.count {
		return fmt.Errorf("creature %s: %d aliases for %d edges", c.id, c.index.count, sends)
	}
	return nil
}

func (ch *channel) checkLinks() error {
	var senders, listeners int
	for i, a := range ch.links {
		l := a.link
		if l.channel != ch || l.atChannel != i || !l.send.on() && !l.listen.on() {
			return fmt.Errorf("channel %s: link %d is misfiled", ch.id, i)
		}
		if l.send.on() {
			senders++
		}
		if l.listen.on() {
			listeners++
		}
	}
	if ch.index != nil && ch.index.count != len(ch.links) {
		return fmt.Errorf("channel %s: %d of %d links are indexed", ch.id, ch.index.count, len(ch.links))
	}
	if senders != ch.senders || listeners != ch.listeners {
		return fmt.Errorf("channel %s: %d senders and %d listeners counted as %d and %d",
			ch.id, senders, listeners, ch.senders, ch.listeners)
	}
	return nil
}
