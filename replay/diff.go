package replay

// Change is a line of a diff of effects.
type Change struct {
	// Sign is ' ' for an effect of both sides, '-' for an effect of the record only, and
	// '+' for an effect of the replay only.
	Sign   byte
	Effect Effect
}

// maxAligned bounds the work of aligning two long lists.
const maxAligned = 1 << 22

// Diff merges the effects of both sides into one list. Equal effects appear once. Between
// them, recorded effects come first.
func (d *Difference) Diff() []Change {
	a, b := d.Recorded, d.Replayed
	var out, tail []Change
	for len(a) > 0 && len(b) > 0 && a[0].same(&b[0]) {
		out = append(out, Change{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].same(&b[len(b)-1]) {
		tail = append(tail, Change{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	out = append(out, align(a, b)...)
	for i := range tail {
		out = append(out, tail[len(tail)-1-i])
	}
	return out
}

// align finds a longest common subsequence of both lists.
func align(a, b []Effect) []Change {
	if len(a)*len(b) > maxAligned {
		return append(changes('-', a), changes('+', b)...)
	}
	longest := make([][]int, len(a)+1) // for the rest from i and j on
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i].same(&b[j]) {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var out, added []Change
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i].same(&b[j]):
			out = append(append(out, added...), Change{' ', a[i]})
			added = nil
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			out = append(out, Change{'-', a[i]})
			i++
		default:
			added = append(added, Change{'+', b[j]})
			j++
		}
	}
	out = append(append(out, changes('-', a[i:])...), added...)
	return append(out, changes('+', b[j:])...)
}

func changes(sign byte, list []Effect) []Change {
	out := make([]Change, 0, len(list))
	for _, e := range list {
		out = append(out, Change{sign, e})
	}
	return out
}
