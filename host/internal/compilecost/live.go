package compilecost

import (
	"math/bits"
	"slices"
)

// terms adds up the cost of the function walked last. height bounds its
// operand stack, whose operands are live from block to block.
func (b *body) terms(height int64) terms {
	t := terms{
		lookups:  b.lookups,
		bounds:   b.boundsSum,
		reloads:  b.calls * b.mutable,
		moved:    b.moved,
		expanded: b.expanded,
		code:     b.code,
		setup:    int64(len(b.m.Types)) + int64(len(b.m.Globals)) + b.largest,
	}
	live, ok := b.liveness()
	if !ok {
		t.live = 1 << 62
		return t
	}
	var searched, loopParams float64
	for n := range b.blocks {
		k := &b.blocks[n]
		if !k.begun {
			continue
		}
		alive := live(int32(n))
		t.live += alive + height
		if k.header != nowhere {
			t.live += live(k.header) // the allocator adds the values live in the surrounding loop
		}
		t.dominators += 4 * k.depth * max(k.preds, 1)
		if k.preds <= 1 && !k.loop {
			continue
		}
		params := alive + k.arity
		t.lookups += 2 * alive * k.chainSum
		t.arguments += params * k.preds
		t.live += alive * k.preds // of the separate blocks of edges
		t.meetings += k.preds * min(k.knownSum, b.accesses)
		searched += f(k.preds) * f(params) * f(params)
		if k.loop {
			loopParams += f(params)
		}
	}
	rounds := 2 + min(loopParams, float64(b.deepest)*f(1+b.copies))
	t.searched = int64(min(rounds*searched, 1<<62))
	return t
}

// liveness computes how many locals are live at the start of each block. It
// returns false if the function is too large.
func (b *body) liveness() (count func(int32) int64, ok bool) {
	number := int32(0)
	for _, u := range b.uses {
		if l := &b.locals[u.local]; l.dense < 0 {
			l.dense = number
			number++
		}
	}
	words := int(number+63) / 64
	if len(b.blocks)*words > maxWords {
		return nil, false
	}
	in, kill := make([]uint64, len(b.blocks)*words), make([]uint64, len(b.blocks)*words)
	set := func(s []uint64, a access) {
		if d := b.locals[a.local].dense; d >= 0 {
			s[int(a.block)*words+int(d)/64] |= 1 << (d % 64)
		}
	}
	for _, u := range b.uses {
		set(in, u)
	}
	for _, w := range b.writes {
		set(kill, w)
	}
	b.flow(in, kill, words)
	counts := make([]int64, len(b.blocks))
	for n := range counts {
		counts[n] = popcount(in[n*words : (n+1)*words])
	}
	return func(n int32) int64 { return counts[n] }, true
}

// flow propagates liveness against the edges until nothing changes, which
// takes about as many rounds as loops are nested.
func (b *body) flow(in, kill []uint64, words int) {
	if words == 0 {
		return
	}
	// Edges are added while their source is the current block, so the edges of
	// one block are adjacent, and blocks are ordered by their ends.
	for changed := true; changed; {
		changed = false
		for _, e := range slices.Backward(b.edges) {
			to, from := int(e.to)*words, int(e.from)*words
			for w := range words {
				add := in[to+w] &^ kill[from+w] &^ in[from+w]
				if add != 0 {
					in[from+w] |= add
					changed = true
				}
			}
		}
	}
}

// popcount returns how many bits of a set are 1.
func popcount(set []uint64) (n int64) {
	for _, w := range set {
		n += int64(bits.OnesCount64(w))
	}
	return n
}
