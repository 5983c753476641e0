package recipes

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/mod/semver"
)

// checkVersion checks required_version: clauses such as >= 0.1, separated by commas,
// which must all be true.
func (l *loader) checkVersion(s scope, expr hcl.Expression, want string) {
	have := canonical(l.opts.Version)
	for clause := range strings.SplitSeq(want, ",") {
		op, version := splitClause(strings.TrimSpace(clause))
		if version == "" || !semver.IsValid(canonical(version)) || compare[op] == nil {
			l.fault(s, expr, "Not a version constraint", fmt.Sprintf("%q cannot be read.", strings.TrimSpace(clause)), `Write for example ">= 0.1" or ">= 0.1, < 2".`)
			return
		}
		if semver.IsValid(have) && !compare[op](have, version) {
			l.fault(s, expr, "Another version is needed", fmt.Sprintf("The recipe needs terrarium %s; this is %s.", want, l.opts.Version),
				"Install a matching version, or change required_version.")
			return
		}
	}
}

var compare = map[string]func(have, version string) bool{
	"=":  func(h, v string) bool { return semver.Compare(h, canonical(v)) == 0 },
	"!=": func(h, v string) bool { return semver.Compare(h, canonical(v)) != 0 },
	">":  func(h, v string) bool { return semver.Compare(h, canonical(v)) > 0 },
	">=": func(h, v string) bool { return semver.Compare(h, canonical(v)) >= 0 },
	"<":  func(h, v string) bool { return semver.Compare(h, canonical(v)) < 0 },
	"<=": func(h, v string) bool { return semver.Compare(h, canonical(v)) <= 0 },
	// ~> 1.2 allows 1.3 but not 2; ~> 1.2.3 allows 1.2.4 but not 1.3.
	"~>": func(h, v string) bool {
		if strings.Count(v, ".") >= 2 {
			return semver.Compare(h, canonical(v)) >= 0 && semver.MajorMinor(h) == semver.MajorMinor(canonical(v))
		}
		return semver.Compare(h, canonical(v)) >= 0 && semver.Major(h) == semver.Major(canonical(v))
	},
}

// splitClause separates the operator of a clause from its version.
func splitClause(clause string) (op, version string) {
	version = strings.TrimSpace(strings.TrimLeft(clause, "<>=!~"))
	op = strings.TrimSpace(strings.TrimSuffix(clause, version))
	if op == "" {
		op = "="
	}
	return op, version
}

// canonical adds the prefix that the comparison needs.
func canonical(version string) string { return "v" + strings.TrimPrefix(version, "v") }
