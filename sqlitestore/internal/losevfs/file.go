package losevfs

import "math/rand/v2"

// sector is the unit in which a write is torn.
const sector = 512

// file is a file on the simulated disk, under whatever name.
type file struct {
	durable []byte // as it was when it was last synced
	pending []op   // since then
	opens   int    // handles
}

// op is a write or a truncation.
type op struct {
	at       int64
	data     []byte
	truncate bool
}

func (o op) apply(content []byte) []byte {
	end := o.at + int64(len(o.data))
	if o.truncate && int64(len(content)) > o.at {
		return content[:o.at:o.at]
	}
	if int64(len(content)) < end {
		content = append(content, make([]byte, end-int64(len(content)))...)
	}
	copy(content[o.at:], o.data)
	return content
}

// become records what was written to the file since it was last synced.
func (f *file) become(content []byte) {
	n := 0
	for n < min(len(content), len(f.durable)) && content[n] == f.durable[n] {
		n++
	}
	if n < len(f.durable) {
		f.pending = append(f.pending, op{at: int64(n), truncate: true})
	}
	if n < len(content) {
		f.pending = append(f.pending, op{at: int64(n), data: content[n:]})
	}
}

func (f *file) sync() {
	for _, o := range f.pending {
		f.durable = o.apply(f.durable)
	}
	f.pending = nil
}

// lose returns what is left of the file after a power loss.
func (f *file) lose(random *rand.Rand) []byte {
	content := f.durable
	n := len(f.pending)
	switch random.IntN(4) {
	case 0: // nothing arrived
	case 1: // everything did
		for _, o := range f.pending {
			content = o.apply(content)
		}
	case 2: // the first ones did, the last of them torn
		n = random.IntN(n + 1)
		for i, o := range f.pending[:n] {
			if i == n-1 {
				o = o.tear(random)
			}
			content = o.apply(content)
		}
	default: // any did
		for _, o := range f.pending {
			if random.IntN(2) == 0 {
				continue
			}
			if random.IntN(8) == 0 {
				o = o.tear(random)
			}
			content = o.apply(content)
		}
	}
	return content
}

// tear cuts a write off at a sector.
func (o op) tear(random *rand.Rand) op {
	if o.truncate {
		return o
	}
	o.data = o.data[:min(len(o.data), sector*random.IntN(len(o.data)/sector+1))]
	return o
}
