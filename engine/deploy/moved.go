package deploy

import (
	"slices"
	"strings"
)

// Move states that something is now declared at another address, so that what exists at
// the former address continues there. An address with a key names one instance of a
// for_each; one without a key names all instances, unless the other address has a key.
// The address of a sub-recipe stands for everything in it.
type Move struct {
	From, To string
	Where    string // the position of the declaration, for messages; may be empty
}

// NowAt returns the address at which something is declared now, given its former address.
// It follows the deployment's moves, the most specific one first.
func (d *Deployment) NowAt(address string) string {
	for range d.Moved { // each applies once: the loader refuses circles
		m := d.MoveOf(address)
		if m == nil {
			break
		}
		address = m.To + address[len(m.From):]
	}
	return address
}

// MoveOf returns the move that concerns an address, the most specific one, or nil.
func (d *Deployment) MoveOf(address string) *Move {
	if len(d.Moved) == 0 {
		return nil
	}
	for end := len(address); end > 0; end = strings.LastIndexAny(address[:end], ".[") {
		i, found := slices.BinarySearchFunc(d.Moved, address[:end], func(m Move, from string) int { return strings.Compare(m.From, from) })
		if found && d.Moved[i].concerns(address[end:]) {
			return &d.Moved[i]
		}
	}
	return nil
}

// concerns reports whether a move applies to an address that continues after From.
func (m *Move) concerns(rest string) bool {
	return !strings.HasPrefix(rest, "[") || !strings.HasSuffix(m.To, "]") // else From has no key, and means the only instance
}

// MovedBy returns the deployment with the addresses that its members have in the next one;
// the deployment itself if that moves nothing. It may be nil.
func (d *Deployment) MovedBy(next *Deployment) *Deployment {
	if d == nil || len(next.Moved) == 0 {
		return d
	}
	out := *d
	out.Root = next.NowAt(d.Root)
	out.Channels, out.Creatures = slices.Clone(d.Channels), slices.Clone(d.Creatures)
	for i := range out.Channels {
		out.Channels[i].Address = next.NowAt(out.Channels[i].Address)
	}
	for i := range out.Creatures {
		c := &out.Creatures[i]
		c.Address = next.NowAt(c.Address)
		c.Listen, c.Send, c.Outputs = slices.Clone(c.Listen), slices.Clone(c.Send), slices.Clone(c.Outputs)
		for k := range c.Listen {
			c.Listen[k].Channel = next.NowAt(c.Listen[k].Channel)
		}
		for k := range c.Send {
			c.Send[k].Channel = next.NowAt(c.Send[k].Channel)
		}
		for k := range c.Outputs {
			c.Outputs[k].To = next.NowAt(c.Outputs[k].To)
		}
	}
	return &out
}
