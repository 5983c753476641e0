package capability

import (
	"context"
	"encoding/json"

	"github.com/seed47132306/terrarium/abi"
)

// Offline returns a kind that reaches nothing: settings and requests are checked as usual,
// but every attempt fails with the code unavailable. It is for tests of recipes, which must
// not reach outside.
func Offline(k Kind) Kind { return offline{k} }

type offline struct{ Kind }

func (o offline) Open(settings json.RawMessage) (Grant, error) {
	g, err := o.Kind.Open(settings)
	if err != nil {
		return nil, err
	}
	return offlineGrant{g}, nil
}

type offlineGrant struct{ Grant }

func (offlineGrant) Do(context.Context, Call) Result {
	return Failure(abi.Unavailable, "a test sends no requests; replace the creature with a mock")
}
