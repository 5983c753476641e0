package topology

import "iter"

// pile is a list that grows at its end without ever being copied as a whole: it
// consists of blocks, of which only the first grows as slices of Go do. An
// addition to a graph of a million would otherwise wait now and then for some
// megabytes to be moved. The zero value is empty.
type pile[T any] struct {
	blocks [][]T
	size   int
}

// block is how many items are moved at once at most.
const block = 1024

// at returns the place of the i-th item, which it has until the next push.
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

// pop removes the last item, which must be there. One empty block stays, so that
// going down and up by one does not make a block each time.
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

// all goes through the items in their order.
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
