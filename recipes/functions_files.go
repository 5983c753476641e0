package recipes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// maxLooked bounds how many names the functions of one folder look at, in total: names in
// folders that they list, and names that they compare with a pattern.
const maxLooked = 1 << 20

// answers record what the folder of a recipe contained when functions looked at it. The
// copy of a recipe keeps the answers beside the files, so that evaluating the copy has
// the same result.
type answers struct {
	known  map[string]string   // JSON by question
	listed map[string][]string // files beneath a folder, by its name
	looked int
}

// answerMark begins the names under which a copy keeps answers. A file has no such name.
const answerMark = "//"

// ask returns the answer to a question, which find answers the first time.
func ask[T any](f *folder, question string, find func() (T, error)) (out T, err error) {
	if text, ok := f.answers.known[question]; ok {
		return out, json.Unmarshal([]byte(text), &out)
	}
	if f.kept != nil {
		text, ok := f.kept[answerMark+question]
		if !ok {
			return out, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("the stored copy of the recipe has no answer to %s", question)}
		}
		return out, json.Unmarshal([]byte(text), &out)
	}
	if out, err = find(); err != nil {
		return out, err
	}
	text, err := json.Marshal(out)
	if err != nil {
		return out, err
	}
	if f.answers.known == nil {
		f.answers.known = map[string]string{}
	}
	f.answers.known[question] = string(text)
	return out, nil
}

func (f *folder) fileExistsFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String, AllowMarked: true}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			rel, err := f.askedPath(args)
			if err != nil {
				return cty.NilVal, err
			}
			found, err := ask(f, fmt.Sprintf("fileexists(%q)", rel), func() (bool, error) { return f.exists(rel) })
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.BoolVal(found), nil
		},
	})
}

// askedPath returns the path that a question is about, relative to the folder. The copy of
// a recipe keeps the question, so it cannot have sensitive arguments.
func (f *folder) askedPath(args []cty.Value) (string, error) {
	for k, v := range args {
		if v.IsMarked() {
			return "", function.NewArgErrorf(k, "it is stored with the recipe, so it cannot be sensitive")
		}
	}
	rel, err := f.relative(args[0].AsString())
	if err != nil {
		return "", function.NewArgError(0, err)
	}
	return rel, nil
}

func (f *folder) exists(rel string) (bool, error) {
	if err := f.look(1); err != nil {
		return false, err
	}
	info, err := fs.Stat(f.files, rel)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, f.refused(rel, err)
	}
	return info.Mode().IsRegular(), nil
}

// look counts names that are looked at.
func (f *folder) look(n int) error {
	if f.answers.looked += n; f.answers.looked > maxLooked {
		return &abi.Error{Code: abi.LimitExceeded, Message: fmt.Sprintf("the recipe looks at more than %d names of files", maxLooked), Remedy: "name a folder with fewer files"}
	}
	return nil
}

func (f *folder) fileSetFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String, AllowMarked: true}, {Name: "pattern", Type: cty.String, AllowMarked: true}},
		Type:   function.StaticReturnType(cty.Set(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			rel, err := f.askedPath(args)
			if err != nil {
				return cty.NilVal, err
			}
			pattern := args[1].AsString()
			if _, err := path.Match(strings.ReplaceAll(pattern, "**", "*"), ""); err != nil {
				return cty.NilVal, function.NewArgErrorf(1, "%q is not a pattern of names: %s", pattern, err)
			}
			names, err := ask(f, fmt.Sprintf("fileset(%q, %q)", rel, pattern), func() ([]string, error) { return f.matching(rel, pattern) })
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			if len(names) == 0 {
				return cty.SetValEmpty(cty.String), nil
			}
			values := make([]cty.Value, len(names))
			for k, name := range names {
				values[k] = cty.StringVal(name)
			}
			return cty.SetVal(values), nil
		},
	})
}

// matching returns the files beneath a folder whose paths from there match a pattern.
func (f *folder) matching(rel, pattern string) ([]string, error) {
	all, ok := f.answers.listed[rel]
	if !ok {
		var err error
		if all, err = f.beneathFolder(rel); err != nil {
			return nil, err
		}
		if f.answers.listed == nil {
			f.answers.listed = map[string][]string{}
		}
		f.answers.listed[rel] = all
	}
	out := []string{}
	steps := strings.Split(pattern, "/")
	for _, name := range all {
		parts := strings.Split(name, "/")
		if err := f.look(len(steps) * len(parts)); err != nil {
			return nil, err
		}
		if matchesPath(steps, parts) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// beneathFolder lists the regular files of a folder and of all folders in it. It follows
// links to files within the recipe's folder, and no links to folders.
func (f *folder) beneathFolder(rel string) ([]string, error) {
	info, err := fs.Stat(f.files, rel)
	if err != nil {
		return nil, f.refused(rel, err)
	}
	if !info.IsDir() {
		return nil, &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("%q is not a folder", rel)}
	}
	var out []string
	err = fs.WalkDir(f.files, rel, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return f.refused(name, err)
		}
		if err := f.look(1); err != nil {
			return err
		}
		if d.IsDir() {
			if info, err := d.Info(); err == nil {
				f.noteOwner(name, info)
			}
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			if info, err := fs.Stat(f.files, name); err != nil || !info.Mode().IsRegular() {
				return nil
			}
		} else if !d.Type().IsRegular() {
			return nil
		}
		if rel != "." {
			name = strings.TrimPrefix(name, rel+"/")
		}
		out = append(out, name)
		return nil
	})
	return out, err
}

// matchesPath reports whether the parts of a path match the steps of a pattern. The step
// ** matches any number of parts. The time grows with the product of both numbers.
func matchesPath(steps, parts []string) bool {
	reached := make([]bool, len(parts)+1) // after the steps so far: which numbers of parts match
	reached[0] = true
	for _, step := range steps {
		next := make([]bool, len(parts)+1)
		for k := range reached {
			switch {
			case step == "**":
				next[k] = reached[k] || k > 0 && next[k-1]
			case k > 0 && reached[k-1]:
				next[k], _ = path.Match(step, parts[k-1])
			}
		}
		reached = next
	}
	return reached[len(parts)]
}
