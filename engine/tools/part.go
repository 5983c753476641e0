package tools

import (
	"fmt"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

// part is a page of a list that is too long for one result. It starts after
// the last item of the previous page: items come and go, but the remaining
// ones keep their order.
type part struct {
	after string
	begun bool
	room  int
	last  string // the last item of the part
	more  bool   // items follow the part
}

func newPart(after string, limit, most int) *part {
	if limit <= 0 || limit > most {
		limit = most
	}
	return &part{after: after, begun: after == "", room: limit}
}

// has reports whether the next item of the list belongs to the part.
func (p *part) has(id string) bool {
	switch {
	case !p.begun:
		p.begun = id == p.after
		return false
	case p.room == 0:
		p.more = true
		return false
	}
	p.room--
	p.last = id
	return true
}

// end returns, at the end of the list, the item after which the next part
// begins, or "" if there is none.
func (p *part) end() (next string, err error) {
	switch {
	case !p.begun:
		return "", &abi.Error{
			Code: abi.NotFound, Op: "tool", Message: fmt.Sprintf("there is no %s in this graph to continue after", errtext.Quoted([]byte(p.after))),
			Remedy: "omit after to start over", IDs: map[string]string{"after": errtext.Clip(p.after)},
		}
	case p.more:
		return p.last, nil
	}
	return "", nil
}
