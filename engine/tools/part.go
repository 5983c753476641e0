package tools

import (
	"fmt"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

// part is a part of a list that is too long for one answer. Its beginning is named by
// the last thing of the part before: things come and go, but what stays keeps its
// place.
type part struct {
	after string
	begun bool
	room  int
	last  string // that belongs to the part
	more  bool   // there is something behind it
}

func newPart(after string, limit, most int) *part {
	if limit <= 0 || limit > most {
		limit = most
	}
	return &part{after: after, begun: after == "", room: limit}
}

// has reports whether the next thing of the list belongs to the part.
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

// end is what the next part begins after, when the list has come to its end; "" if
// there is no more.
func (p *part) end() (next string, err error) {
	switch {
	case !p.begun:
		return "", &abi.Error{
			Code: abi.NotFound, Op: "tool", Message: fmt.Sprintf("there is no %s in this graph to go on behind", errtext.Quoted([]byte(p.after))),
			Remedy: "leave after out, and begin again", IDs: map[string]string{"after": errtext.Clip(p.after)},
		}
	case p.more:
		return p.last, nil
	}
	return "", nil
}
