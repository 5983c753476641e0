package topology

import "iter"

// pile is a list that grows at its end without ever being copied completely:
// it consists of blocks, and only the first one grows like a Go slice.
// Otherwise an addition to a graph of a million would sometimes wait while
// megabytes are moved. The zero value is empty.
type pile[T any] struct {
	blocks [][]T
	size   int
}

// block is the most items that are moved at once.
const block = 1024

// at returns a pointer to the i-th item, valid until the next push.
func (p *pile[T]) at(i int) *T { return &p.blocks[i/block][i%block] }

func (p *pile[T]) push(item T) {
	i := p.size / block
	if i == len(p.blocks) {
		var fresh []T
		if i > 0 {
			fresh = make([]T, 0, block)
		}
		p.blocks = append(p.blocks, fresh)
	}
	p.blocks[i] = append(p.blocks[i], item)
	p.size++
}

// pop removes the last item, which must exist. One empty block stays, so that
// alternating pop and push does not allocate a block each time.
func (p *pile[T]) pop() {
	var none T
	p.size--
	i, rest := p.size/block, p.size%block
	p.blocks[i][rest] = none
	p.blocks[i] = p.blocks[i][:rest]
	if end := len(p.blocks) - 1; end*block > p.size+block {
		p.blocks[end] = nil
		p.blocks = p.blocks[:end]
	}
}

// all iterates over the items in order.
func (p *pile[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, items := range p.blocks {
			for _, item := range items {
				if !yield(item) {
					return
				}
			}
		}
	}
}

// pointers iterates over pointers to the items in order, valid until the next
// push.
func (p *pile[T]) pointers() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, items := range p.blocks {
			for i := range items {
				if !yield(&items[i]) {
					return
				}
			}
		}
	}
}

// some iterates over the first items, but no more than a limit.
func (p *pile[T]) some(most int) iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := range min(most, p.size) {
			if !yield(*p.at(i)) {
				return
			}
		}
	}
}
