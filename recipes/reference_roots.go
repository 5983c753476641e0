package recipes

import (
	"github.com/seed47132306/terrarium/recipes/policy"
)

// Reference describes a first word of references in expressions.
type Reference struct {
	Name string
	// Block is the block that declares what it refers to: "locals" for local values, empty
	// for words that no block declares.
	Block   string
	Form    string   // as it is written, such as channel.NAME
	Doc     string   // in Markdown, with links relative to docs/reference
	Members []Member // the fixed names that can follow it; nil if a block declares them
}

// Member is a name that can follow a fixed first word.
type Member struct{ Name, Doc string }

// references describes all first words of references.
var references = []Reference{
	{Name: "var", Block: "variable", Form: "var.NAME", Doc: "a variable"},
	{Name: "local", Block: "locals", Form: "local.NAME", Doc: "a local value"},
	{Name: "channel", Block: "channel", Form: "channel.NAME", Doc: "a channel that the recipe declares; with `for_each`, `channel.NAME[\"key\"]`"},
	{Name: "creature", Block: "creature", Form: "creature.NAME", Doc: "a creature that the recipe declares; with `for_each`, `creature.NAME[\"key\"]`"},
	{Name: "species", Block: "species", Form: "species.NAME", Doc: "a species that the recipe declares"},
	{Name: "predicate", Block: "predicate", Form: "predicate.NAME", Doc: "a predicate, in the `when` of a [wire](recipes.md#wire)"},
	{Name: "recipe", Block: "recipe", Form: "recipe.NAME.OUTPUT", Doc: "an [output](recipes.md#output) of a [sub-recipe](recipes.md#recipe); " +
		"`recipe.NAME.channel.NAME` is a thing in the sub-recipe, of one of the kinds above or another `recipe`"},
	{Name: "root", Form: "root", Doc: "in the `to` of a wire: the root of the deployment"},
	{Name: "each", Form: "each.NAME", Doc: "in a block with `for_each`: the current element", Members: []Member{{"key", "its key"}, {"value", "its value"}}},
	{Name: "path", Form: "path.recipe", Doc: "the absolute path of the recipe's folder", Members: []Member{{"recipe", "the absolute path of the recipe's folder"}}},
	{Name: "event", Form: "event.NAME", Doc: "in the `match` of a [policy](recipes.md#policy): a field of the event; in that of a [`stop_when`](recipes.md#stop_when): a counter", Members: eventMembers()},
	{Name: "result", Form: "result.NAME", Doc: "in an `assert` of a [test](recipes.md#test): what the messages led to"},
	{Name: "graph", Form: "graph.NAME", Doc: "in an `assert` of a [check](recipes.md#check): the deployment"},
}

// eventMembers are the fields of events that conditions can use.
func eventMembers() []Member {
	var out []Member
	known := map[string]bool{}
	add := func(name, doc string) {
		if !known[name] {
			known[name] = true
			out = append(out, Member{name, doc})
		}
	}
	for _, f := range policy.SendFields {
		add(f.Name, f.Doc)
	}
	for _, f := range policy.Fields {
		if f.Type != policy.Data {
			add(f.Name, f.Doc)
		}
	}
	for _, m := range stopMembers {
		add(m.Name, m.Doc)
	}
	return out
}

// stopMembers are the counters that the conditions of stop_when blocks can use.
var stopMembers = []Member{
	{"turns", "in `stop_when`: the committed turns"}, {"messages", "in `stop_when`: the messages that creatures have sent"}, {"tokens", "in `stop_when`: the tokens of language models"},
	{"money", "in `stop_when`: the money for language models, in the currency of their prices"}, {"seconds", "in `stop_when`: the time since the recipe began"},
}
