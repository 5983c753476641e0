package terrarium

import (
	"fmt"
	"regexp"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/internal/contain"
	"github.com/seed47132306/terrarium/recipes"
)

// withOwn are the kinds of capabilities of a program that has added some.
func withOwn(added []capability.Kind) []capability.Kind {
	return append(recipes.OwnCapabilities(), added...)
}

// checkKinds checks the kinds that a program has added. Of two kinds of one name, a recipe would be
// checked by one and executed by the other.
func (o *Options) checkKinds() error {
	known := map[string]bool{}
	for _, k := range o.Capabilities {
		if err := checkKind(k, func() string { return "capability" }, known); err != nil {
			return err
		}
	}
	for _, k := range o.Connectors {
		if err := checkKind(k, func() string { return string(k.Direction()) }, known); err != nil {
			return err
		}
	}
	return nil
}

// kind is what kinds of capabilities and of connectors have in common.
type kind interface {
	Name() string
	Settings() []capability.Setting
}

// kindName is the form of the names of kinds.
var kindName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// checkKind checks one kind. known has the kinds before it.
func checkKind(k kind, of func() string, known map[string]bool) error {
	return contain.Call("a kind that this program has added", func() error {
		name := k.Name()
		what := fmt.Sprintf("the kind of %s %q", of(), name)
		refuse := func(remedy, format string, args ...any) error {
			return &abi.Error{Code: abi.InvalidArgument, Op: "new", Message: what + fmt.Sprintf(format, args...), Remedy: remedy}
		}
		switch {
		case !kindName.MatchString(name):
			return refuse("begin the name with a lower-case letter, and use only those, digits and underscores", " does not have a valid name")
		case known[what]:
			return refuse("keep one of them, or rename it", " is in the options twice")
		}
		known[what] = true
		for _, s := range k.Settings() {
			if !recipes.HasSettingType(s.Type) {
				return refuse("use one of the types in package capability", " has a setting %q of the unknown type %q", s.Name, s.Type)
			}
		}
		return nil
	})
}
