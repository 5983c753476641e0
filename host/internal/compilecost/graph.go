package compilecost

// A block is straight-line code.
type block struct {
	loop     bool
	begun    bool
	arity    int64 // parameters for operands
	preds    int64
	chain    int64 // blocks above it, up to the first with several predecessors
	chainSum int64 // of chain+1 over all predecessors
	depth    int64 // upper bound of its depth in the dominator tree
	known    int64 // addresses known to be in memory at its end
	knownSum int64 // the same over all predecessors
	header   int32 // innermost loop around it, or nowhere
}

// An edge leads from one block to another, count times.
type edge struct{ from, to, count int32 }

// add makes a block that code will branch to or start.
func (b *body) add(arity int64, header int32) int32 {
	b.blocks = append(b.blocks, block{arity: arity, header: header, depth: 1 << 62, known: 1 << 62})
	return int32(len(b.blocks) - 1)
}

// connect adds an edge from the current block.
func (b *body) connect(to int32, count int32) {
	from, t := &b.blocks[b.current], &b.blocks[to]
	n := int64(count)
	b.edges = append(b.edges, edge{b.current, to, count})
	t.preds += n
	t.chainSum += n * (from.chain + 1)
	t.knownSum += n * from.known
	if t.begun {
		return // back to the header of a loop
	}
	t.depth, t.known = min(t.depth, from.depth+1), min(t.known, from.known)
	t.chain = from.chain + 1
}

// begin starts the code of a block. The first block has no predecessor.
func (b *body) begin(n int32) {
	t := &b.blocks[n]
	switch {
	case n == 0:
		t.depth, t.known = 0, 0
	case t.preds == 0:
		b.current = nowhere
		return
	case t.preds > 1 || t.loop:
		t.chain = 0
	}
	t.begun = true
	b.current = n
	b.fresh = false
}

// leave ends the current block.
func (b *body) leave() {
	b.boundsSum += b.blocks[b.current].known
	b.current = nowhere
}
