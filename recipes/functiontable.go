package recipes

import (
	"strings"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Function describes a function that expressions can call.
type Function struct {
	Name      string
	Group     string // what it works on
	Signature string // such as max(numbers...)
	Doc       string
}

// Functions returns all functions, by group.
func Functions() []Function {
	f := &folder{}
	out := make([]Function, 0, len(builtinFunctions)+2)
	add := func(b builtin, fn function.Function) {
		out = append(out, Function{Name: b.name, Group: b.group, Signature: signature(b.name, fn), Doc: b.doc})
	}
	for _, b := range builtinFunctions {
		add(b, b.fn)
	}
	fns := f.functions()
	for _, b := range fileFunctions {
		add(b, fns[b.name])
	}
	return out
}

func signature(name string, fn function.Function) string {
	var params []string
	for _, p := range fn.Params() {
		params = append(params, p.Name)
	}
	if p := fn.VarParam(); p != nil {
		params = append(params, p.Name+"...")
	}
	return name + "(" + strings.Join(params, ", ") + ")"
}

// builtin is a function with its description.
type builtin struct {
	group, name, doc string
	fn               function.Function
}

// Groups of functions.
const (
	onNumbers = "numbers"
	onTexts   = "texts"
	onLists   = "lists, sets, maps"
	onTypes   = "types"
	onData    = "data"
	onTime    = "time"
	onFiles   = "files"
)

// fileFunctions are those that read beneath the recipe's folder; each folder makes
// its own.
var fileFunctions = []builtin{
	{group: onFiles, name: "file", doc: "what a file says, which is UTF-8 text"},
	{group: onFiles, name: "templatefile", doc: "the same of a template, with the values of an object in it"},
}

// builtinFunctions are all others, which are pure.
var builtinFunctions = []builtin{
	{onNumbers, "abs", "the number without its sign", stdlib.AbsoluteFunc},
	{onNumbers, "ceil", "the next whole number that is not below it", stdlib.CeilFunc},
	{onNumbers, "floor", "the next whole number that is not above it", stdlib.FloorFunc},
	{onNumbers, "int", "the number without its fraction", stdlib.IntFunc},
	{onNumbers, "log", "the logarithm to a base", stdlib.LogFunc},
	{onNumbers, "max", "the largest", stdlib.MaxFunc},
	{onNumbers, "min", "the smallest", stdlib.MinFunc},
	{onNumbers, "parseint", "the whole number that a text says in a base from 2 to 62", stdlib.ParseIntFunc},
	{onNumbers, "pow", "a power", stdlib.PowFunc},
	{onNumbers, "signum", "-1, 0 or 1: its sign", stdlib.SignumFunc},

	{onTexts, "chomp", "without line ends at the end", stdlib.ChompFunc},
	{onTexts, "endswith", "whether a text ends so", affixFunc("suffix", strings.HasSuffix)},
	{onTexts, "format", "a text in which verbs such as `%s` and `%03d` stand for values", formatFunc},
	{onTexts, "formatlist", "the same for each element of lists", formatListFunc},
	{onTexts, "indent", "all lines but the first moved to the right by so many spaces", indentFunc},
	{onTexts, "join", "the texts of lists with a text between them", stdlib.JoinFunc},
	{onTexts, "lower", "in small letters", stdlib.LowerFunc},
	{onTexts, "regex", "what a pattern finds first; an error if that is nothing", stdlib.RegexFunc},
	{onTexts, "regexall", "a list of all that a pattern finds", stdlib.RegexAllFunc},
	{onTexts, "replace", "with every occurrence of a text replaced", stdlib.ReplaceFunc},
	{onTexts, "split", "a list of the parts between separators", stdlib.SplitFunc},
	{onTexts, "startswith", "whether a text begins so", affixFunc("prefix", strings.HasPrefix)},
	{onTexts, "strlen", "how many characters a text has", stdlib.StrlenFunc},
	{onTexts, "strrev", "back to front", stdlib.ReverseFunc},
	{onTexts, "substr", "so many characters from an offset; -1 for all of the rest", stdlib.SubstrFunc},
	{onTexts, "title", "every word with a capital", stdlib.TitleFunc},
	{onTexts, "trim", "without some characters at both ends", stdlib.TrimFunc},
	{onTexts, "trimprefix", "without a text at the beginning", stdlib.TrimPrefixFunc},
	{onTexts, "trimspace", "without white space at both ends", stdlib.TrimSpaceFunc},
	{onTexts, "trimsuffix", "without a text at the end", stdlib.TrimSuffixFunc},
	{onTexts, "upper", "in capitals", stdlib.UpperFunc},

	{onLists, "chunklist", "a list of lists of at most so many elements", stdlib.ChunklistFunc},
	{onLists, "coalesce", "the first that is not null", stdlib.CoalesceFunc},
	{onLists, "coalescelist", "the first list that is not empty", stdlib.CoalesceListFunc},
	{onLists, "compact", "without empty texts", stdlib.CompactFunc},
	{onLists, "concat", "one list of several", stdlib.ConcatFunc},
	{onLists, "contains", "whether a value is in it", stdlib.ContainsFunc},
	{onLists, "distinct", "each value once", stdlib.DistinctFunc},
	{onLists, "element", "the element at an index, which begins anew behind the last", stdlib.ElementFunc},
	{onLists, "flatten", "lists within it replaced by their elements", stdlib.FlattenFunc},
	{onLists, "index", "the element at an index or key", stdlib.IndexFunc},
	{onLists, "keys", "the keys, sorted", stdlib.KeysFunc},
	{onLists, "length", "how many elements it has; of a text, how many characters", lengthFunc},
	{onLists, "lookup", "the element at a key, or another value if there is none", stdlib.LookupFunc},
	{onLists, "merge", "one map of several; later ones go before earlier ones", stdlib.MergeFunc},
	{onLists, "range", "a list of numbers: up to an end, from a start, in steps; at most 1,024", stdlib.RangeFunc},
	{onLists, "reverse", "back to front", stdlib.ReverseListFunc},
	{onLists, "setintersection", "what is in all sets", stdlib.SetIntersectionFunc},
	{onLists, "setproduct", "all combinations of an element of each", setProductFunc},
	{onLists, "setsubtract", "what is in the first and not in the second", stdlib.SetSubtractFunc},
	{onLists, "setunion", "what is in any set", stdlib.SetUnionFunc},
	{onLists, "slice", "the elements from one index to before another", stdlib.SliceFunc},
	{onLists, "sort", "texts in order", stdlib.SortFunc},
	{onLists, "values", "the values, sorted by their keys", stdlib.ValuesFunc},
	{onLists, "zipmap", "a map of a list of keys and a list of values", stdlib.ZipmapFunc},

	{onTypes, "can", "whether an expression has a value", tryfunc.CanFunc},
	{onTypes, "tobool", "as true or false", conversion(cty.Bool)},
	{onTypes, "tolist", "as a list", conversion(cty.List(cty.DynamicPseudoType))},
	{onTypes, "tomap", "as a map", conversion(cty.Map(cty.DynamicPseudoType))},
	{onTypes, "tonumber", "as a number", conversion(cty.Number)},
	{onTypes, "toset", "as a set", conversion(cty.Set(cty.DynamicPseudoType))},
	{onTypes, "tostring", "as a text", conversion(cty.String)},
	{onTypes, "try", "the first expression that has a value", tryfunc.TryFunc},

	{onData, "base64decode", "the text that base64 stands for", base64DecodeFunc},
	{onData, "base64encode", "a text in base64", base64EncodeFunc},
	{onData, "csvdecode", "a list of objects, one for each line but the first, which has their names", stdlib.CSVDecodeFunc},
	{onData, "jsondecode", "what JSON says", jsonDecodeFunc},
	{onData, "jsonencode", "a value as JSON", stdlib.JSONEncodeFunc},

	{onTime, "formatdate", "a time, given as `2006-01-02T15:04:05Z`, in a format such as `YYYY-MM-DD`", stdlib.FormatDateFunc},
	{onTime, "timeadd", "a time, given so, and a duration later", stdlib.TimeAddFunc},
}
