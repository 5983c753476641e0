package recipes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// fitting compares the settings of a creature with the declarations of its module.
type fitting struct {
	*evaluator
	scope   scope
	d       *declaration
	species *ofSpecies // may be nil
	module  *module
	spec    *deploy.CreatureSpec
	partial bool // of a species: a spawn may add to its configuration
}

func (f *fitting) check() {
	f.memory()
	f.grants()
	if f.module.info.Manifest == nil {
		return
	}
	f.capabilities()
	f.config()
}

// name returns the name of the module in messages.
func (f *fitting) name() string {
	if m := f.module.info.Manifest; m != nil && m.Name != "" {
		return m.Name
	}
	return f.module.ref[strings.LastIndexAny(f.module.ref, `/\`)+1:]
}

// source is a place that may have settings of the creature.
type source struct {
	in    *evaluator
	scope scope
	d     *declaration
}

func (f *fitting) sources() []source {
	out := []source{{f.evaluator, f.scope, f.d}}
	if f.species != nil {
		out = append(out, source{f.species.in.evaluator, scope{title: f.species.title}, f.species.declaration})
	}
	return out
}

// find returns where an attribute of a nested block is written, or else the creature.
func (f *fitting) find(block, attribute string) (source, hcl.Range) {
	for _, s := range f.sources() {
		for _, b := range s.in.blocks(s.scope, s.d) {
			if b.Type != block {
				continue
			}
			if a := s.in.blockContent(s.d.title, b).attr(attribute); a != nil {
				return s, a.Range
			}
		}
	}
	return f.sources()[0], f.d.at
}

func (s source) report(at hcl.Range, d Diagnostic) { s.in.report(s.scope, at, d) }

func (f *fitting) memory() {
	limit := cmp.Or(f.spec.Limits.Memory, abi.DefaultLimits.Memory)
	least := f.module.info.MemoryMin
	if least <= limit {
		return
	}
	s, at := f.find("limits", "memory")
	s.report(at, Diagnostic{Summary: "Memory limit too small",
		Detail: fmt.Sprintf("The module %s starts with %d bytes of memory, but the limit of %s is %d.", f.name(), least, f.spec.Address, limit),
		Remedy: fmt.Sprintf("Allow %d bytes or more: limits { memory = \"%dKiB\" }.", least, (least+1023)/1024)})
}

// uses are the imports that each grant affects.
var uses = map[string][]string{"clock": {"now", "clock_time_get"}, "random": {"random", "random_get"}}

// grants warns of grants without effect, and of imports that no grant allows.
func (f *fitting) grants() {
	imports := map[string]bool{}
	for _, i := range f.module.info.Imports {
		imports[i.Name] = true
	}
	given := map[string]bool{"clock": f.spec.Grants.Clock, "random": f.spec.Grants.Random}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !given[name] || slices.ContainsFunc(uses[name], func(i string) bool { return imports[i] }) {
			continue
		}
		s, at := f.find("grants", name)
		s.report(at, Diagnostic{Severity: Warning, Summary: "Unused grant",
			Detail: fmt.Sprintf("The module %s never imports %s, so the grant %s changes nothing.", f.name(), uses[name][0], name), Remedy: "Remove the grant."})
	}
	switch reaches := f.reaches(httpKind); {
	case imports["http"] && !reaches && f.dependsOn(httpKind):
		f.sources()[0].report(f.moduleRange(), Diagnostic{Severity: Warning, Summary: "Capability not granted",
			Detail: fmt.Sprintf("The module %s imports http, and %s is granted no http block: every call returns denied.", f.name(), f.spec.Address),
			Remedy: `Declare one and write grants { http = ["NAME"] }, if the module depends on it.`})
	case reaches && !imports["http"]:
		s, at := f.find("grants", httpKind)
		s.report(at, Diagnostic{Severity: Warning, Summary: "Unused grant",
			Detail: fmt.Sprintf("The module %s never imports http, so the grant changes nothing.", f.name()), Remedy: "Remove the grant."})
	}
}

// dependsOn reports whether the module may need a capability that it imports. It does not
// if its manifest lists what it needs, and the list lacks that capability.
func (f *fitting) dependsOn(kind string) bool {
	m := f.module.info.Manifest
	return m == nil || m.Capabilities == nil || slices.Contains(m.Capabilities, kind)
}

// reaches reports whether the creature has a capability of a kind.
func (f *fitting) reaches(kind string) bool {
	return slices.ContainsFunc(f.spec.Capabilities, func(c deploy.Capability) bool { return string(c.Kind) == kind })
}

func (f *fitting) moduleRange() hcl.Range {
	if a := f.d.attr("module"); a != nil {
		return a.Expr.Range()
	}
	if a := f.d.attr("species"); a != nil {
		return a.Expr.Range()
	}
	return f.d.at
}

// capabilities compares the capabilities in the manifest with the grants.
func (f *fitting) capabilities() {
	given := map[string]bool{"clock": f.spec.Grants.Clock, "random": f.spec.Grants.Random}
	for _, name := range f.module.info.Manifest.Capabilities {
		granted, known := given[name]
		switch {
		case granted, f.reaches(name):
		case name == httpKind:
			continue // the import says the same
		case known:
			f.sources()[0].report(f.moduleRange(), Diagnostic{Severity: Warning, Summary: "Capability not granted",
				Detail: fmt.Sprintf("The module %s declares that it needs %s, which is not granted to %s.", f.name(), name, f.spec.Address),
				Remedy: fmt.Sprintf("Write grants { %s = true }.", name)})
		case isOwn(name):
			f.sources()[0].report(f.moduleRange(), Diagnostic{Severity: Warning, Summary: "Capability not granted",
				Detail: fmt.Sprintf("The module %s declares that it needs %s, and no %s block is granted to %s.", f.name(), name, name, f.spec.Address),
				Remedy: fmt.Sprintf(`Declare one and write grants { %s = ["NAME"] }.`, name)})
		default:
			f.sources()[0].report(f.moduleRange(), Diagnostic{Summary: "Not supported by this version",
				Detail: fmt.Sprintf("The module %s declares that it needs the capability %q, which this version of terrarium cannot grant.", f.name(), name),
				Remedy: "Use another module, or a later version."})
		}
	}
}
