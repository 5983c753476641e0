package diff_test

import (
	"testing"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
)

// A plan shows what new sources and sinks reach outside, even in a sub-recipe.
func TestPlanShowsWhatConnectorsReach(t *testing.T) {
	for address, shown := range map[string]bool{"source.webhook.orders": true, "recipe.shop.sink.file.out": true, "policy.send.short": false} {
		d := &deploy.Deployment{Name: "r", Declared: []deploy.Declaration{{Address: address, Settings: map[string]deploy.DeclaredValue{"path": {Text: `"x"`}}}}}
		plan := diff.CompareDeclared(nil, nil, []*deploy.Deployment{d})
		if len(plan) != 1 || (len(plan[0].Changes) == 1) != shown {
			t.Errorf("the plan of %s is %+v", address, plan)
		}
	}
}
