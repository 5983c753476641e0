package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/internal/near"
)

// exportRules lists the functions a creature exports. The markers may have any
// type because they are never called.
var exportRules = []struct {
	name     string
	typ      *signature
	required bool
}{
	{abi.ExportMarker, nil, true},
	{abi.ExportHandle, ptr(sig("ii:i")), true},
	{abi.ExportInit, ptr(sig(":i")), false},
	{abi.ExportStop, ptr(sig(":")), false},
	{abi.ExportGraphChanged, nil, false},
	{abi.ExportInitialize, ptr(sig(":")), false},
}

func ptr[T any](v T) *T { return &v }

// maxProblems is about how many problems one error lists: a module may have
// thousands of wrong imports.
const maxProblems = 20

// checkContract finds every way in which a module breaks the contract, and
// reads its manifest.
func checkContract(op string, s *shape) error {
	problems, more := breaches(s, maxProblems)
	switch len(problems) {
	case 0:
		return nil
	case 1:
		return withOp(op, problems[0])
	}
	message := fmt.Sprintf("the module breaks the contract in %d places", len(problems)+more)
	if more > 0 {
		problems = append(problems, fmt.Errorf("… and %d more", more))
	}
	return &abi.Error{Code: commonCode(problems), Op: op, Message: message, Err: &problemList{problems}}
}

// breaches returns what breaks the contract, an [abi.Error] for each place, and reads the
// manifest. The parameter most limits how many wrong imports it describes; it counts the
// others.
func breaches(s *shape, most int) (problems []error, more int) {
	add := func(e *abi.Error) { problems = append(problems, e) }
	checkMemory(s, add)
	checkExports(s, add)
	checkManifest(s, add)
	more = checkImports(s, most, add)
	return problems, more
}

// commonCode returns the code that all problems share, or invalid_argument.
func commonCode(problems []error) abi.Code {
	code := abi.CodeOf(problems[0])
	for _, p := range problems {
		if c := abi.CodeOf(p); c != code && c != abi.Internal {
			return abi.InvalidArgument
		}
	}
	return code
}

// maxNames is how many exports are compared with a missing name.
const maxNames = 1000

// problemList shows every problem on its own line.
type problemList struct{ problems []error }

func (l *problemList) Error() string {
	var b strings.Builder
	for _, p := range l.problems {
		b.WriteString("\n  - ")
		b.WriteString(p.Error())
	}
	return b.String()
}

func (l *problemList) Unwrap() []error { return l.problems }

func checkMemory(s *shape, add func(*abi.Error)) {
	e := s.export(abi.ExportMemory)
	switch {
	case e != nil && e.Kind == wasmbin.ExternMemory:
	case e != nil:
		add(&abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the export memory is a %s, not a memory", kindName(e.Kind)),
			Remedy: "export the linear memory by the name memory"})
	default:
		add(&abi.Error{Code: abi.InvalidArgument, Message: "the module does not export memory",
			Remedy: `export its linear memory by that name; in WAT: (memory (export "memory") 1)`})
	}
}

func checkExports(s *shape, add func(*abi.Error)) {
	for _, rule := range exportRules {
		e := s.export(rule.name)
		if e == nil {
			if rule.required {
				add(missingExport(s, rule.name, rule.typ))
			}
			continue
		}
		if e.Kind != wasmbin.ExternFunc {
			add(&abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the export %s is a %s, not a function", rule.name, kindName(e.Kind)),
				Remedy: "export a function by that name"})
			continue
		}
		if rule.typ == nil {
			continue
		}
		got, ok := s.functionType(e.Index)
		if int64(e.Index) < int64(s.ImportedFuncs()) {
			add(&abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the export %s is a function that the module imports", rule.name),
				Remedy: "export a function that the module defines"})
		} else if !ok {
			add(&abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the export %s refers to a function that the module does not have", rule.name),
				Remedy: "build or copy the module again"})
		} else if !got.equal(*rule.typ) {
			add(&abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the export %s has the type %s", rule.name, got),
				Remedy: fmt.Sprintf("declare it as %s", rule.typ)})
		}
	}
}

func missingExport(s *shape, name string, typ *signature) *abi.Error {
	e := &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the module does not export %s", name)}
	var names []string
	for i := range s.Exports {
		if x := &s.Exports[i]; x.Kind == wasmbin.ExternFunc && len(x.Name) <= maxFrameName && len(names) < maxNames {
			names = append(names, x.Name)
		}
	}
	switch near := nearest(name, names); {
	case near != "":
		e.Remedy = fmt.Sprintf("it exports %s: did you mean that?", near)
	case name == abi.ExportMarker:
		e.Remedy = "export a function of that name, which may be empty, to say that it is written for version 1 of the contract"
	case s.exportsFunction("_start"):
		e.Remedy = "it is a program with _start: build a reactor (clang: -mexec-model=reactor, Go: -buildmode=c-shared) that exports it as " + typ.String()
	default:
		e.Remedy = "export it as " + typ.String()
	}
	return e
}

// checkImports reports the first wrong imports, at most the given number, and counts the
// others.
func checkImports(s *shape, most int, add func(*abi.Error)) (more int) {
	reported := 0
	for i := range s.Imports {
		switch imp := &s.Imports[i]; {
		case fits(s, imp):
		case reported < most:
			reported++
			add(wrongImport(s, imp))
		default:
			more++
		}
	}
	return more
}

// fits reports whether an import is provided.
func fits(s *shape, i *wasmbin.Import) bool {
	if i.Kind != wasmbin.ExternFunc {
		return false
	}
	want, ok := provided[i.Module][i.Name]
	if !ok {
		return false
	}
	got, ok := s.signatureAt(i.Type)
	return ok && got.equal(want.signature)
}

// wrongImport says what is wrong with an import that does not fit.
func wrongImport(s *shape, i *wasmbin.Import) *abi.Error {
	name := shown(i.Module) + "." + shown(i.Name)
	if i.Kind != wasmbin.ExternFunc {
		e := &abi.Error{Code: abi.Unsupported, Message: fmt.Sprintf("the module imports the %s %s; only functions can be imported", kindName(i.Kind), name),
			Remedy: fmt.Sprintf("define the %s in the module", kindName(i.Kind))}
		if i.Kind == wasmbin.ExternMemory || i.Kind == wasmbin.ExternTable {
			e.Remedy += fmt.Sprintf(" (wasm-ld: link without --import-%s)", kindName(i.Kind))
		}
		return e
	}
	functions, ok := provided[i.Module]
	if !ok {
		return unknownModule(i)
	}
	want, ok := functions[i.Name]
	if !ok {
		return unknownFunction(i, functions)
	}
	got, ok := s.signatureAt(i.Type)
	if !ok {
		return &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the import %s has a type that the module does not declare", name),
			Remedy: "build or copy the module again"}
	}
	return &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the import %s has the type %s", name, got),
		Remedy: fmt.Sprintf("declare it as %s", want.signature)}
}

// shown returns a name in the form used in messages.
func shown(name string) string {
	if len(name) > maxFrameName {
		name = name[:maxFrameName] + "…"
	}
	return printable(name)
}

func unknownModule(i *wasmbin.Import) *abi.Error {
	e := &abi.Error{Code: abi.Unsupported, Message: fmt.Sprintf("the module imports %s.%s, but there is no module %s", shown(i.Module), shown(i.Name), shown(i.Module))}
	switch {
	case strings.HasPrefix(i.Module, "terrarium_v"):
		e.Remedy = "this host has version 1 of the contract: import from " + abi.ImportModule
	case strings.HasPrefix(i.Module, "wasi:"), strings.HasPrefix(i.Module, "wasi_"):
		e.Remedy = "build for wasm32-wasip1, which imports from " + wasiModule
	case i.Module == "gojs" || i.Module == "go":
		e.Remedy = "build with GOOS=wasip1 instead of GOOS=js"
	case strings.HasPrefix(i.Module, "__wbindgen"), i.Module == "wbg":
		e.Remedy = "build it without wasm-bindgen, which needs a JavaScript host"
	default:
		if near := nearest(i.Module, providedModules()); near != "" {
			e.Remedy = fmt.Sprintf("did you mean %s?", near)
			break
		}
		e.Remedy = fmt.Sprintf("a creature imports from %s and, if its toolchain needs it, %s", abi.ImportModule, wasiModule)
	}
	return e
}

func unknownFunction(i *wasmbin.Import, functions map[string]importable) *abi.Error {
	e := &abi.Error{Code: abi.Unsupported, Message: fmt.Sprintf("the module imports %s.%s, but there is no such function", shown(i.Module), shown(i.Name))}
	var names []string
	for name := range functions {
		names = append(names, name)
	}
	slices.Sort(names)
	near := nearest(i.Name, names)
	_, ours := abi.FunctionByName(i.Name)
	switch {
	case near != "":
		e.Remedy = fmt.Sprintf("did you mean %s?", near)
	case i.Module == envModule && ours:
		e.Remedy = fmt.Sprintf("import it from %s; in C: __attribute__((import_module(%q)))", abi.ImportModule, abi.ImportModule)
	case i.Module == envModule:
		e.Remedy = "define the function, or link the library that has it: linkers import undefined functions from env"
	case i.Module == abi.ImportModule:
		e.Remedy = "the functions are " + strings.Join(names, ", ")
	default:
		e.Remedy = "WASI preview 1 has no such function; check the spelling"
	}
	return e
}

func checkManifest(s *shape, add func(*abi.Error)) {
	if len(s.manifests) == 0 {
		return
	}
	if len(s.manifests) > 1 {
		add(&abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the module has %d custom sections %s", len(s.manifests), abi.ManifestSection),
			Remedy: "keep one of them"})
		return
	}
	m, err := abi.ParseManifest(s.manifests[0])
	var e *abi.Error
	switch {
	case errors.As(err, &e):
		add(e)
	case !slices.Contains(m.ABI, abi.Version):
		add(&abi.Error{Code: abi.Unsupported, Message: fmt.Sprintf("the manifest requires version %v of the contract; this host has %d", m.ABI, abi.Version),
			Remedy: "use a build of the creature for that version"})
	default:
		s.manifest = m
	}
}

// nearest returns the name that was probably meant, or "".
func nearest(name string, names []string) string {
	best, found := 2, "" // one letter wrong in a short name, three in a long one
	switch {
	case len(name) >= 9:
		best = 4
	case len(name) >= 4:
		best = 3
	}
	name = strings.ToLower(name)
	for _, n := range names {
		if d := near.Distance(name, strings.ToLower(n)); d < best {
			best, found = d, n
		}
	}
	return found
}

func kindName(k wasmbin.ExternKind) string {
	if k == wasmbin.ExternFunc {
		return "function"
	}
	return k.String()
}
