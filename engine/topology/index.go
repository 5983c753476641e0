package topology

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// index finds things by id or name. It grows and shrinks by one bucket at a
// time (linear hashing), where a map of Go now and then moves a thousand
// entries at once: with four maps to a creature that joins, more than one in a
// hundred would wait for that. The zero value is empty.
//
// Places in it differ from run to run, so whoever goes through it has to sort.
type index[K ~string, V any] struct {
	buckets [][]entry[K, V] // a bucket's number is the low bits of its entries' hashes
	count   int
}

// entry keeps its hash, so that moving it does not touch its key.
type entry[K ~string, V any] struct {
	hash  uint64
	key   K
	value V
}

// Buckets hold this many entries on average before there is one more, and
// that many before there is one less.
const (
	fullBucket  = 6
	emptyBucket = 2
)

// keyed keeps who chooses names from choosing where they go.
var keyed = maphash.MakeSeed()

func hash[K ~string](key K) uint64 { return maphash.String(keyed, string(key)) }

// get returns what is filed under key, or the zero value.
func (x *index[K, V]) get(key K) (value V) {
	if x.count == 0 {
		return value
	}
	h := hash(key)
	bucket := x.buckets[x.place(h)]
	if i := find(bucket, h, key); i >= 0 {
		return bucket[i].value
	}
	return value
}

// set files value under key, in place of what was there.
func (x *index[K, V]) set(key K, value V) {
	if len(x.buckets) == 0 {
		x.buckets = make([][]entry[K, V], 1)
	}
	h := hash(key)
	bucket := &x.buckets[x.place(h)]
	if i := find(*bucket, h, key); i >= 0 {
		(*bucket)[i].value = value
		return
	}
	*bucket = append(*bucket, entry[K, V]{h, key, value})
	x.count++
	if x.count > fullBucket*len(x.buckets) {
		x.grow()
	}
}

// remove forgets key. A nil index has none.
func (x *index[K, V]) remove(key K) {
	if x == nil || x.count == 0 {
		return
	}
	h := hash(key)
	bucket := &x.buckets[x.place(h)]
	i := find(*bucket, h, key)
	if i < 0 {
		return
	}
	last := len(*bucket) - 1
	(*bucket)[i] = (*bucket)[last]
	(*bucket)[last] = entry[K, V]{}
	*bucket = (*bucket)[:last]
	x.count--
	if len(x.buckets) > 1 && x.count < emptyBucket*len(x.buckets) {
		x.shrink()
	}
}

// values goes through everything, in no order.
func (x *index[K, V]) values() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, bucket := range x.buckets {
			for _, e := range bucket {
				if !yield(e.value) {
					return
				}
			}
		}
	}
}

// place returns the bucket of a hash: as many of its low bits as the number of
// buckets has, or one less where there is no such bucket yet.
func (x *index[K, V]) place(h uint64) int {
	last := uint64(len(x.buckets) - 1)
	i := h & (1<<bits.Len64(last) - 1)
	if i > last {
		i &^= 1 << (bits.Len64(last) - 1)
	}
	return int(i)
}

// grow adds a bucket. What belongs there comes out of a single other one.
func (x *index[K, V]) grow() {
	added := len(x.buckets)
	x.buckets = append(x.buckets, nil)
	from := partner(added)
	stay := x.buckets[from][:0]
	for _, e := range x.buckets[from] {
		if x.place(e.hash) == added {
			x.buckets[added] = append(x.buckets[added], e)
		} else {
			stay = append(stay, e)
		}
	}
	clear(x.buckets[from][len(stay):])
	x.buckets[from] = stay
}

// shrink gives the entries of the last bucket back to where they came from.
func (x *index[K, V]) shrink() {
	last := len(x.buckets) - 1
	into := partner(last)
	x.buckets[into] = append(x.buckets[into], x.buckets[last]...)
	x.buckets[last] = nil
	x.buckets = x.buckets[:last]
}

// partner returns the bucket that shares all bits with a later one but the
// highest.
func partner(bucket int) int { return bucket &^ (1 << (bits.Len(uint(bucket)) - 1)) }

func find[K ~string, V any](bucket []entry[K, V], h uint64, key K) int {
	for i := range bucket {
		if bucket[i].hash == h && bucket[i].key == key {
			return i
		}
	}
	return -1
}
