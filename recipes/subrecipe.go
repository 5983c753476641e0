package recipes

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/zclconf/go-cty/cty"
)

// A sub-recipe is a recipe within the folder of the recipe that declares it. Each
// instance has its own loader; its things have their own names and addresses in the same
// deployment. Its variables are its inputs. They are evaluated in the recipe that gives
// them, when they are needed, so that two sub-recipes can be given each other's channels.
const (
	maxRecipeDepth = 8    // nested sub-recipes
	maxSubRecipes  = 1024 // in a whole recipe
)

// instantiation identifies the instance of a sub-recipe that a loader is for. The zero
// value is the outermost recipe.
type instantiation struct {
	parent *reporter
	block  *declaration // of the type recipe
	place  string       // its address, such as recipe.alerts["north"]
	prefix string       // of addresses, such as recipe.alerts["north"].
	names  string       // prefix of names, such as alerts.north.
	files  []string     // its files, relative to the outermost folder
	depth  int
}

// blockTitle adds the sub-recipe to the title of a block.
func (rep *reporter) blockTitle(title string) string {
	switch {
	case rep.parent == nil:
		return title
	case title == "":
		return rep.place
	}
	return title + " of " + rep.place
}

// withSubRecipes returns the loaders of the recipe and of all its sub-recipes, each after
// its parent, in the order of declaration.
func (l *loader) withSubRecipes() []*loader {
	out := []*loader{l}
	for _, d := range l.ordered["recipe"] {
		l.value(node{"recipe", d.name})
		for _, i := range d.instances {
			if sub := l.loaders[i.address]; sub != nil {
				out = append(out, sub.withSubRecipes()...)
			}
		}
	}
	return out
}

// recipe loads a sub-recipe and returns the value of a reference to it: an object of its
// members by kind and name, or with for_each an object of such objects.
func (l *loader) recipe(d *declaration) (cty.Value, bool) {
	if !l.instantiate(d) {
		d.failed = true
		return cty.DynamicVal, false
	}
	if d.attr("for_each") == nil {
		return l.subs[d.instances[0].address].members(), true
	}
	all := map[string]cty.Value{}
	for _, i := range d.instances {
		all[i.key] = l.subs[i.address].members()
	}
	return cty.ObjectVal(all), true
}

// instantiate loads the sub-recipe of a block, once for each element of its for_each. It
// is not ok after an error.
func (l *loader) instantiate(d *declaration) bool {
	refs, ok := l.expand(d)
	source := d.attr("source")
	if !ok || source == nil || refs == cty.NilVal {
		return false
	}
	f, files, ok := l.findSource(scope{title: d.title}, source.Expr)
	if !ok || !l.mayNest(d, f, files) {
		return false
	}
	for i := range d.instances {
		if l.begun++; l.begun > maxSubRecipes {
			l.report(scope{title: d.title}, d.at, Diagnostic{Summary: "Too many sub-recipes",
				Detail: fmt.Sprintf("A recipe can have at most %d sub-recipes, including those within sub-recipes.", maxSubRecipes), Remedy: "Use for_each on creatures where that is enough."})
			return false
		}
		l.sub(d, &d.instances[i], f, files)
	}
	return true
}

// findSource finds the folder and the files of a sub-recipe.
func (l *loader) findSource(s scope, expr hcl.Expression) (*folder, []string, bool) {
	v, ok := l.eval(s, expr)
	if !ok {
		return nil, nil, false
	}
	v, _ = v.UnmarkDeep()
	if v.IsNull() || v.Type() != cty.String {
		l.fault(s, expr, "Wrong type", fmt.Sprintf("Source must be a text; this is %s.", describe(v)), `Write the path of a folder or file, such as "./alerts".`)
		return nil, nil, false
	}
	f, names, d := l.folder.beneath(v.AsString())
	if d != nil {
		l.report(s, expr.Range(), *d)
		return nil, nil, false
	}
	if known := l.folders[f.prefix]; known != nil {
		f.close()
		f = known
	}
	return f, names, true
}

// mayNest refuses recipes that contain themselves.
func (l *loader) mayNest(d *declaration, f *folder, names []string) bool {
	files := filesIn(f, names)
	for up := l.reporter; up != nil; up = up.parent {
		if !slices.ContainsFunc(files, func(file string) bool { return slices.Contains(up.files, file) }) {
			continue
		}
		l.report(scope{title: d.title}, d.at, Diagnostic{Summary: "Recipe within itself",
			Detail: fmt.Sprintf("The source includes %s, which this recipe is part of.", enumerate(files)), Remedy: "Move the shared parts into a separate recipe."})
		return false
	}
	if l.depth >= maxRecipeDepth {
		l.report(scope{title: d.title}, d.at, Diagnostic{Summary: "Recipes nest too deeply",
			Detail: fmt.Sprintf("Sub-recipes can be nested at most %d deep.", maxRecipeDepth)})
		return false
	}
	return true
}

func filesIn(f *folder, names []string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, f.prefix+name)
	}
	slices.Sort(out)
	return out
}

func (l *loader) sub(d *declaration, i *instance, f *folder, files []string) {
	sub := l.newLoader(f, instantiation{
		parent: l.reporter, block: d, place: i.address, prefix: i.address + ".", names: i.name + ".",
		depth: l.depth + 1,
	})
	l.loaders[i.address], l.subs[i.address] = sub, sub.evaluator
	from := fmt.Sprintf("%s at %s", d.title, l.where(d.at))
	for name, a := range d.content.Attributes {
		if !slices.ContainsFunc(d.shape().Attributes, func(known Attribute) bool { return known.Name == name }) {
			sub.inputs[name] = input{from: from, expr: a.Expr, owner: l.evaluator, scope: instanceScope(d, i), name: a.NameRange}
		}
	}
	sub.readFiles(files)
	sub.beginTest()
	sub.testInputs()
	sub.onlyOutermost()
}

// onlyOutermost reports settings that only the outermost recipe can have.
func (l *loader) onlyOutermost() {
	if b := l.singles["session"]; b != nil {
		l.outermostOnly(b.title, b.at, "A session")
	}
	for _, b := range l.ordered[stopWhen] {
		l.outermostOnly(b.title, b.at, "A stop_when block")
	}
	if l.root != nil {
		l.outermostOnly("root", l.root.NameRange, "The root")
	}
	l.terrarium(&deploy.Deployment{})
}

func (rep *reporter) outermostOnly(title string, at hcl.Range, what string) {
	rep.report(scope{title: title}, at, Diagnostic{Summary: "Not in a sub-recipe", Detail: what + " belongs to the whole deployment.",
		Remedy: "Set it in the outermost recipe, which can refer to things in here, such as " + rep.prefix + "creature.NAME."})
}

// inputMissing reports a variable of a sub-recipe without a value.
func (vs *variables) inputMissing(v *declaration) {
	vs.parent.report(scope{title: vs.block.title}, vs.block.at, Diagnostic{Summary: "No value for variable " + v.name,
		Detail: fmt.Sprintf("The sub-recipe's variable has no default (%s), so it needs a value.", vs.where(v.at)),
		Remedy: fmt.Sprintf("Add %s = … to the block, or a default to the variable.", v.name)})
}
