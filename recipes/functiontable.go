package recipes

import (
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	ctyyaml "github.com/zclconf/go-cty-yaml"
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

	parameters []SchemaParameter
}

// Functions returns all functions, by group.
func Functions() []Function {
	f := &folder{}
	out := make([]Function, 0, len(builtinFunctions)+len(fileFunctions))
	add := func(b builtin, fn function.Function) {
		parameters := parametersOf(fn)
		out = append(out, Function{Name: b.name, Group: b.group, Signature: signature(b.name, parameters), Doc: b.doc, parameters: parameters})
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

func signature(name string, parameters []SchemaParameter) string {
	texts := make([]string, len(parameters))
	for i, p := range parameters {
		texts[i] = p.Name
		if p.Variadic {
			texts[i] += "..."
		}
	}
	return name + "(" + strings.Join(texts, ", ") + ")"
}

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

// fileFunctions read within the recipe's folder; each folder makes its own.
var fileFunctions = []builtin{
	{group: onFiles, name: "file", doc: "the content of a file, which must be UTF-8 text"},
	{group: onFiles, name: "fileexists", doc: "whether there is a regular file with this path"},
	{group: onFiles, name: "fileset", doc: "the paths of the files in a folder that match a pattern, as a set: `*` matches any characters of a name, `**` any number of folders"},
	{group: onFiles, name: "templatefile", doc: "a template file, rendered with the values of an object"},
}

// builtinFunctions are all other functions, which are pure.
var builtinFunctions = []builtin{
	{onNumbers, "abs", "the absolute value", stdlib.AbsoluteFunc},
	{onNumbers, "ceil", "the smallest whole number that is not below it", stdlib.CeilFunc},
	{onNumbers, "floor", "the largest whole number that is not above it", stdlib.FloorFunc},
	{onNumbers, "int", "the number without its fraction", stdlib.IntFunc},
	{onNumbers, "log", "the logarithm to a base", stdlib.LogFunc},
	{onNumbers, "max", "the largest", stdlib.MaxFunc},
	{onNumbers, "min", "the smallest", stdlib.MinFunc},
	{onNumbers, "parseint", "a text as a whole number, in a base from 2 to 62", stdlib.ParseIntFunc},
	{onNumbers, "pow", "a power", stdlib.PowFunc},
	{onNumbers, "signum", "-1, 0 or 1: its sign", stdlib.SignumFunc},
	{onNumbers, "sum", "the sum of a list", sumFunc},

	{onTexts, "chomp", "the text without line ends at its end", stdlib.ChompFunc},
	{onTexts, "endswith", "whether the text ends with the suffix", affixFunc("suffix", strings.HasSuffix)},
	{onTexts, "format", "a text with values in place of verbs such as `%s` and `%03d`", formatFunc},
	{onTexts, "formatlist", "the same for each element of lists", formatListFunc},
	{onTexts, "indent", "the text with all lines but the first indented by a number of spaces", indentFunc},
	{onTexts, "join", "the texts of the lists, joined with a separator", stdlib.JoinFunc},
	{onTexts, "lower", "in lower case", stdlib.LowerFunc},
	{onTexts, "regex", "the first match of a pattern; an error if there is none", stdlib.RegexFunc},
	{onTexts, "regexall", "a list of all matches of a pattern", stdlib.RegexAllFunc},
	{onTexts, "replace", "the text with every occurrence of a substring replaced; `\"/PATTERN/\"`, between slashes, is a pattern as for `regex`, and `$1` in the replacement its first group", replaceFunc},
	{onTexts, "split", "a list of the parts between separators", stdlib.SplitFunc},
	{onTexts, "startswith", "whether the text starts with the prefix", affixFunc("prefix", strings.HasPrefix)},
	{onTexts, "strcontains", "whether the text contains another text", containsTextFunc},
	{onTexts, "strlen", "the number of characters", stdlib.StrlenFunc},
	{onTexts, "strrev", "the characters in reverse order", stdlib.ReverseFunc},
	{onTexts, "substr", "a number of characters, from an offset on; with -1, all of the rest", stdlib.SubstrFunc},
	{onTexts, "title", "the text with every word capitalized", stdlib.TitleFunc},
	{onTexts, "trim", "the text without certain characters at both ends", stdlib.TrimFunc},
	{onTexts, "trimprefix", "the text without a prefix", stdlib.TrimPrefixFunc},
	{onTexts, "trimspace", "the text without white space at both ends", stdlib.TrimSpaceFunc},
	{onTexts, "trimsuffix", "the text without a suffix", stdlib.TrimSuffixFunc},
	{onTexts, "upper", "in upper case", stdlib.UpperFunc},

	{onLists, "alltrue", "whether all elements are true; true for an empty list", quantifier(false)},
	{onLists, "anytrue", "whether any element is true; false for an empty list", quantifier(true)},
	{onLists, "chunklist", "the list, split into lists of at most a number of elements", stdlib.ChunklistFunc},
	{onLists, "coalesce", "the first that is not null", stdlib.CoalesceFunc},
	{onLists, "coalescelist", "the first list that is not empty", stdlib.CoalesceListFunc},
	{onLists, "compact", "the list without empty texts", stdlib.CompactFunc},
	{onLists, "concat", "several lists as one", stdlib.ConcatFunc},
	{onLists, "contains", "whether the list contains a value", stdlib.ContainsFunc},
	{onLists, "distinct", "each value once", stdlib.DistinctFunc},
	{onLists, "element", "the element at an index, which wraps around at the end", stdlib.ElementFunc},
	{onLists, "flatten", "the list with nested lists replaced by their elements", stdlib.FlattenFunc},
	{onLists, "index", "the element at an index or key", stdlib.IndexFunc},
	{onLists, "keys", "the keys, sorted", stdlib.KeysFunc},
	{onLists, "length", "the number of elements, or of characters in a text", lengthFunc},
	{onLists, "lookup", "the element at a key, or another value if there is none", stdlib.LookupFunc},
	{onLists, "merge", "several maps as one; later ones take precedence", stdlib.MergeFunc},
	{onLists, "one", "the only element of a list or set, or null if it is empty; an error if it has several", oneFunc},
	{onLists, "range", "a list of numbers, by end, start and step; at most 1,024", stdlib.RangeFunc},
	{onLists, "reverse", "the elements in reverse order", stdlib.ReverseListFunc},
	{onLists, "setintersection", "the elements that all sets have", stdlib.SetIntersectionFunc},
	{onLists, "setproduct", "all combinations of an element of each", setProductFunc},
	{onLists, "setsubtract", "the elements of the first set that the second lacks", stdlib.SetSubtractFunc},
	{onLists, "setunion", "the elements that any set has", stdlib.SetUnionFunc},
	{onLists, "slice", "the elements from one index up to, but not including, another", stdlib.SliceFunc},
	{onLists, "sort", "the texts, sorted", stdlib.SortFunc},
	{onLists, "values", "the values, sorted by their keys", stdlib.ValuesFunc},
	{onLists, "zipmap", "a map from a list of keys and a list of values", stdlib.ZipmapFunc},

	{onTypes, "can", "whether an expression has a value", tryfunc.CanFunc},
	{onTypes, "nonsensitive", "the same value, which is no longer [sensitive](recipes.md#variable): it may be shown and stored", nonsensitiveFunc},
	{onTypes, "tobool", "as true or false", conversion(cty.Bool)},
	{onTypes, "tolist", "as a list", conversion(cty.List(cty.DynamicPseudoType))},
	{onTypes, "tomap", "as a map", conversion(cty.Map(cty.DynamicPseudoType))},
	{onTypes, "tonumber", "as a number", conversion(cty.Number)},
	{onTypes, "toset", "as a set", conversion(cty.Set(cty.DynamicPseudoType))},
	{onTypes, "tostring", "as a text", conversion(cty.String)},
	{onTypes, "try", "the first expression that has a value", tryfunc.TryFunc},

	{onData, "base64decode", "a text decoded from base64", base64DecodeFunc},
	{onData, "base64encode", "a text encoded as base64", base64EncodeFunc},
	{onData, "csvdecode", "a list of objects, one for each line after the first; the first line contains the names of the attributes", stdlib.CSVDecodeFunc},
	{onData, "jsondecode", "a value decoded from JSON", jsonDecodeFunc},
	{onData, "jsonencode", "a value encoded as JSON", stdlib.JSONEncodeFunc},
	{onData, "sha256", "the SHA-256 hash of a text, in hexadecimal", sha256Func},
	{onData, "yamldecode", "a value decoded from YAML, with at most 16 aliases", yamlDecodeFunc},
	{onData, "yamlencode", "a value encoded as YAML", ctyyaml.YAMLEncodeFunc},

	{onTime, "formatdate", "a time, given as `2006-01-02T15:04:05Z`, in a format such as `YYYY-MM-DD`", stdlib.FormatDateFunc},
	{onTime, "timeadd", "a time plus a duration", stdlib.TimeAddFunc},
	{onTime, "timecmp", "-1, 0 or 1: whether a time is before, at or after another time", timeCmpFunc},

	{onFiles, "basename", "the last element of a path", textFunc("path", path.Base)},
	{onFiles, "dirname", "a path without its last element", textFunc("path", path.Dir)},
}
