package policy

import (
	"testing"
	"time"

	"github.com/seed47132306/terrarium/internal/unhurried"
)

// TestUnhurried proves that tests can change the default timeout, and that no other is changed.
func TestUnhurried(t *testing.T) {
	for _, c := range []struct{ policies, given, want time.Duration }{
		{0, 0, DefaultTimeout},
		{0, DefaultTimeout, DefaultTimeout},
		{unhurried.Plenty, 0, unhurried.Plenty},
		{unhurried.Plenty, DefaultTimeout, unhurried.Plenty},
		{unhurried.Plenty, 20 * time.Millisecond, 20 * time.Millisecond},
		{unhurried.Plenty, MaxTimeout, MaxTimeout},
	} {
		unhurried.Policies = c.policies
		if got := newCompiled(Policy{Name: "p", Timeout: c.given}, 0).Timeout; got != c.want {
			t.Errorf("with %v for tests, a timeout of %v is %v; want %v", c.policies, c.given, got, c.want)
		}
	}
	unhurried.Policies = 0
}
