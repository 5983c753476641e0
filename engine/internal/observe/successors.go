package observe

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
)

// LoadSuccessors reads the successors of the graphs of earlier runs. It returns the youngest
// session, if there is any.
func (o *Observers) LoadSuccessors(ctx context.Context, c journal.Chronicle) (last journal.SessionID, err error) {
	list, err := c.Catalogue(ctx)
	if err != nil {
		return "", err
	}
	for old, id := range journal.NewSuccession(list) {
		o.Successors.Store(old, id)
	}
	if len(list) > 0 {
		last = list[len(list)-1].Session
	}
	return last, nil
}
