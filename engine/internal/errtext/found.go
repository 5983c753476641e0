package errtext

import (
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// namedAtMost is how many candidates an error lists.
const namedAtMost = 4

// TheOnly returns the only id that a name stands for, or the error that there is none or
// are several.
func TheOnly[T ~string](what, name string, found []T) (T, error) {
	switch len(found) {
	case 0:
		return "", Gone(what, name)
	case 1:
		return found[0], nil
	}
	ids := make([]string, 0, namedAtMost)
	for _, id := range found[:min(len(found), namedAtMost)] {
		ids = append(ids, string(id))
	}
	return "", &abi.Error{
		Code: abi.Ambiguous, Message: fmt.Sprintf("%d %ss are named %s", len(found), what, name),
		Remedy: "name it by its id, such as " + strings.Join(ids, " or "), IDs: map[string]string{what: name},
	}
}

// NotApplied is the error for a species of a deployment that has not been applied.
func NotApplied(deployment string, applied []string) error {
	remedy := "apply its recipe first"
	if len(applied) > 0 {
		remedy += "; applied: " + Listed(applied)
	}
	return &abi.Error{
		Code: abi.NotFound, Op: "spawn", Message: fmt.Sprintf("no deployment %s is applied", Clip(deployment)),
		Remedy: remedy, IDs: map[string]string{"deployment": Clip(deployment)},
	}
}

// NotSpawnable is the error that lists the species that can be spawned, of one deployment
// or, without one, of all.
func NotSpawnable(deployment, species string, spawnable []string) error {
	remedy := "give a species of the recipe the attribute spawnable, or declare a catalog"
	if len(spawnable) > 0 {
		nearest := Nearest(species, listedAtMost, spawnable, func(name string) string { return name })
		remedy = "these may be spawned: " + AndMore(nearest, len(spawnable))
	}
	ids := map[string]string{"species": Clip(species)}
	if deployment != "" {
		ids["deployment"] = deployment
	}
	return &abi.Error{Code: abi.NotFound, Op: "spawn", Message: fmt.Sprintf("no species %s may be spawned", Clip(species)), Remedy: remedy, IDs: ids}
}
