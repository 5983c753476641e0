package topology

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// index finds values by id or name. It grows and shrinks by one bucket at a
// time (linear hashing). A Go map sometimes moves a thousand entries at once;
// adding a creature updates four maps, so more than one addition in a hundred
// would wait for that. The zero value is empty.
//
// The order of entries differs from run to run, so callers that iterate must
// sort.
type index[K ~string, V any] struct {
	buckets pile[bucket[K, V]] // a bucket's number is the low bits of its entries' hashes
	count   int
}

// bucket keeps a byte of the hash of each of its first entries. With these, most lookups
// of a missing key end without reading the entries. An addition makes several such
// lookups.
type bucket[K ~string, V any] struct {
	tags    uint64 // the i-th byte is the tag of the i-th entry; 0: there is none
	entries []entry[K, V]
}

// tagged is how many entries of a bucket have a tag.
const tagged = 8

// entry keeps its hash, so that moving it does not touch its key.
type entry[K ~string, V any] struct {
	hash  uint64
	key   K
	value V
}

// The average number of entries in a bucket above which a bucket is added, and
// below which one is removed. Buckets that have not been divided lately hold twice as
// many as the others, but seldom more entries than tags.
const (
	fullBucket  = tagged / 2
	emptyBucket = 1
)

// keyed seeds the hash, so that authors of names cannot choose their buckets.
var keyed = maphash.MakeSeed()

func hash[K ~string](key K) uint64 { return maphash.String(keyed, string(key)) }

// get returns the value of key, or the zero value.
func (x *index[K, V]) get(key K) (value V) {
	if x.count == 0 {
		return value
	}
	h := hash(key)
	b := x.buckets.at(x.place(h))
	if i := b.find(h, key); i >= 0 {
		return b.entries[i].value
	}
	return value
}

// set sets the value of key.
func (x *index[K, V]) set(key K, value V) {
	h := hash(key)
	if x.count > 0 {
		b := x.buckets.at(x.place(h))
		if i := b.find(h, key); i >= 0 {
			b.entries[i].value = value
			return
		}
	}
	x.put(entry[K, V]{h, key, value})
}

// reserve makes buckets for n keys, if the index is empty.
func (x *index[K, V]) reserve(n int) {
	for x.count == 0 && x.buckets.size < n/fullBucket {
		x.buckets.push(bucket[K, V]{entries: make([]entry[K, V], 0, tagged)})
	}
}

// part moves the entries whose values are leaving to another index, in linear
// time. The keys must not be in the other one. Both are read in the order of
// their buckets, because the numbers of these are bits of the same hash.
func (x *index[K, V]) part(into *index[K, V], leaves func(V) bool) {
	into.reserve(x.count / 2)
	for b := range x.buckets.pointers() {
		for i := 0; i < len(b.entries); {
			if e := b.entries[i]; leaves(e.value) {
				b.remove(i)
				x.count--
				into.put(e)
			} else {
				i++
			}
		}
	}
	for x.buckets.size > 1 && x.count < emptyBucket*x.buckets.size {
		x.shrink()
	}
}

// put adds an entry whose key is not in the index.
func (x *index[K, V]) put(e entry[K, V]) {
	if x.buckets.size == 0 {
		x.buckets.push(bucket[K, V]{})
	}
	x.buckets.at(x.place(e.hash)).add(e)
	x.count++
	if x.count > fullBucket*x.buckets.size {
		x.grow()
	}
}

// remove removes key. A nil index is empty.
func (x *index[K, V]) remove(key K) {
	if x == nil || x.count == 0 {
		return
	}
	h := hash(key)
	b := x.buckets.at(x.place(h))
	i := b.find(h, key)
	if i < 0 {
		return
	}
	b.remove(i)
	x.count--
	if x.buckets.size > 1 && x.count < emptyBucket*x.buckets.size {
		x.shrink()
	}
}

// values iterates over all values, in no particular order.
func (x *index[K, V]) values() iter.Seq[V] {
	return func(yield func(V) bool) {
		for b := range x.buckets.all() {
			for _, e := range b.entries {
				if !yield(e.value) {
					return
				}
			}
		}
	}
}

// place returns the bucket of a hash: as many of its low bits as the number of
// buckets has, or one bit less if there is no such bucket yet.
func (x *index[K, V]) place(h uint64) int {
	last := uint64(x.buckets.size - 1)
	i := h & (1<<bits.Len64(last) - 1)
	if i > last {
		i &^= 1 << (bits.Len64(last) - 1)
	}
	return int(i)
}

// grow adds a bucket. Its entries come from a single other bucket.
func (x *index[K, V]) grow() {
	number := x.buckets.size
	x.buckets.push(bucket[K, V]{entries: make([]entry[K, V], 0, tagged)})
	added, from := x.buckets.at(number), x.buckets.at(partner(number))
	for i := 0; i < len(from.entries); {
		if e := from.entries[i]; x.place(e.hash) == number {
			from.remove(i)
			added.add(e)
		} else {
			i++
		}
	}
}

// shrink moves the entries of the last bucket back to the bucket they came
// from.
func (x *index[K, V]) shrink() {
	last := x.buckets.size - 1
	into := x.buckets.at(partner(last))
	for _, e := range x.buckets.at(last).entries {
		into.add(e)
	}
	x.buckets.pop()
}

// partner returns the earlier bucket that differs from a later one only in its
// highest bit.
func partner(bucket int) int { return bucket &^ (1 << (bits.Len(uint(bucket)) - 1)) }

// find returns the index of key among the entries, or -1.
func (b *bucket[K, V]) find(h uint64, key K) int {
	for match := b.matches(h); match != 0; match &= match - 1 {
		i := bits.TrailingZeros64(match) / 8
		if e := &b.entries[i]; e.hash == h && e.key == key {
			return i
		}
	}
	for i := tagged; i < len(b.entries); i++ {
		if e := &b.entries[i]; e.hash == h && e.key == key {
			return i
		}
	}
	return -1
}

// matches sets the highest bit of each byte of tags that equals the tag of h:
// those that are zero in the difference. A borrow may also set it for a byte
// that differs only in the lowest bit; such a byte always has an entry,
// because tags have the highest bit set.
func (b *bucket[K, V]) matches(h uint64) uint64 {
	const ones, highest = 0x0101010101010101, 0x8080808080808080
	differ := b.tags ^ ones*tag(h)
	return (differ - ones) &^ differ & highest
}

// tag returns a byte of bits that do not select the bucket; it is never zero.
func tag(h uint64) uint64 { return h>>57 | 1<<7 }

func (b *bucket[K, V]) add(e entry[K, V]) {
	b.mark(len(b.entries), tag(e.hash))
	b.entries = append(b.entries, e)
}

// remove replaces the i-th entry with the last.
func (b *bucket[K, V]) remove(i int) {
	last := len(b.entries) - 1
	b.entries[i] = b.entries[last]
	b.mark(i, tag(b.entries[i].hash))
	b.entries[last] = entry[K, V]{}
	b.mark(last, 0)
	b.entries = b.entries[:last]
}

func (b *bucket[K, V]) mark(i int, tag uint64) {
	if i < tagged {
		b.tags = b.tags&^(0xff<<(8*i)) | tag<<(8*i)
	}
}
