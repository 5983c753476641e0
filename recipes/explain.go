package recipes

import (
	"errors"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// keepPlace records where a creature is declared, for errors at its start.
func (dec *decoder) keepPlace(s scope, d *declaration, address string) {
	if d.place == nil {
		place := dec.at(s, d.at, Diagnostic{Severity: Error})
		d.place = &place
	}
	dec.places[address] = d.place
}

// Explain turns an error of applying the recipe into a diagnostic at the block of the
// creature that cannot start. It returns nil for any other error.
func (r *Recipe) Explain(err error) Diagnostics {
	var start *deploy.StartError
	if !errors.As(err, &start) || start.Deployment != r.deployment.Name || r.places[start.Address] == nil {
		return nil
	}
	d := *r.places[start.Address]
	d.Summary, d.Detail = "The creature does not start", start.Address+" cannot start: "+strings.TrimSuffix(start.Reason(), ".")+"."
	d.Remedy = "Change its configuration, or use another module."
	var cause *abi.Error
	if errors.As(err, &cause) && cause.Remedy != "" {
		d.Remedy = sentence(cause.Remedy)
	}
	return Diagnostics{d}
}
