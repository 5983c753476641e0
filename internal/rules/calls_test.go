package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// ownContexts lists the declarations that make their own context, with the
// reason why none is passed.
var ownContexts = map[string]string{
	// engine
	"preparedNode.Discard":     "an instance that is given up closes within its bounds, and nothing waits",
	"Rehearsal.Starting":       "what a rehearsed turn calls for is answered from a record",
	"Rehearsal.Begin":          "the same",
	"following.removeCreature": "closing a module takes no time",
	"core.retireLater":         "a timer calls it, and closing the engine closes what is left",
	"Ended":                    "a context that has ended, to ask without waiting",
	// connector
	"Runner.Set": "connectors run until the recipe changes or the runner is closed",
	// host
	"compileFor": "it is the whole of a process, which its parent ends",
	// sqlitestore
	"Conn.Exec":             "a statement of a writer is not left half way",
	"Conn.Query":            "the same",
	"Conn.QueryOnce":        "the same",
	"Conn.Integer":          "the same",
	"Statement.execute":     "the same",
	"throughDriver.Execute": "the same",
	"openGuarded":           "pragmas of a connection that is being opened",
	"Schema.build":          "an empty file in a temporary directory",
	"Schema.verify":         "an empty database in memory",
	"Layouts.Of":            "the same",
	"Catalog.commit":        "what has become of a transaction has to be known; it has a bound of its own",
	"standstill.refresh":    "the next reader finds what this one has opened",
	"Visitor.Leave":         "a reader that has been interrupted leaves as well",
	"keeper.work":           "a goroutine of the directory; closing the directory ends it",
	"keeper.close":          "it is closing",
	"Directory.shut":        "it is closing",
	"startHydrator":         "a goroutine of the directory; closing the directory ends it",
	"startIndexer":          "the same",
}

// readsClock lists the functions that read the clock, with the reason why not
// an engine's clock.
var readsClock = map[string]string{
	"Real.Now":              "this is the clock",
	"Real.Since":            "the same",
	"Bound":                 "a context's deadline is of the real time",
	"machineClock.Now":      "the same, for connectors",
	"machine.Now":           "the same, for tests of connectors",
	"readBody":              "a connection's deadline is of the real time",
	"boundRefused":          "a connection's deadline is of the real time",
	"timedConn.Read":        "the same",
	"timedConn.Write":       "the same",
	"conn.pings":            "the keep-alive of a connection is of the real time",
	"Terrarium.Close":       "the same",
	"RunTest":               "how long a test took is for the reader of its report",
	"isolate.run":           "a script's timer is of the real time",
	"call.look":             "a guest's deadline is of the real time",
	"compiled.find":         "looking for the lines of a trap may take only so much real time",
	"Sections.Find":         "the same",
	"limit.look":            "the same",
	"newLogins":             "a login expires in real time",
	"Handler.operation":     "a connection's deadline is of the real time",
	"timedWriter.renew":     "the same",
	"appendLagged":          "what a reader has missed is no event of the engine",
	"Kit.tidy":              "the same",
	"Start":                 "a collector compares the times of several programs",
	"Exporter.follow":       "the same",
	"Exporter.nameOf":       "names are asked for again in real time",
	"Exporter.sendCounters": "a collector compares the times of several programs",
	"newFork":               "a session's birth, which no event tells",
	"Open":                  "it is the default of an option",
	"Directory.newborn":     "background work lets new stores be for a while",
	"hydrator.hydrateAll":   "the same",
	"Store.take":            "a writer waits for further records in real time",
	"indexer.round":         "background work measures itself",
	"indexer.pace":          "the same",
	"Directory.Search":      "up to when the index is brought",
	"shortage.note":         "descriptors are short in real time",
	"shortage.lasts":        "the same",
}

func TestContextsArePassed(t *testing.T) {
	onlyIn(t, "context", []string{"Background", "TO" + "DO"}, ownContexts, "pass the caller's context")
}

func TestTimeIsTheClocks(t *testing.T) {
	onlyIn(t, "time", []string{"Now", "Since", "Until"}, readsClock, "ask the clock that the caller has given")
}

// onlyIn refuses calls of functions of a package outside the listed
// declarations.
func onlyIn(t *testing.T, pkg string, functions []string, listed map[string]string, advice string) {
	t.Helper()
	used := map[string]bool{}
	libraryFiles(t, func(room string, set *token.FileSet, file *ast.File) {
		if room == "engine/storetest" || strings.HasPrefix(room, "conformance") {
			return // suites of tests
		}
		for _, d := range file.Decls {
			name := nameOf(d)
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if of, ok := call.X.(*ast.Ident); ok && of.Name == pkg && slices.Contains(functions, call.Sel.Name) {
					if used[name] = true; listed[name] == "" {
						t.Errorf("%s: %s calls %s.%s; %s", set.Position(n.Pos()), name, pkg, call.Sel.Name, advice)
					}
				}
				return true
			})
		}
	})
	for name := range listed {
		if !used[name] {
			t.Errorf("%s does not look at %s any more: take it off the list", name, pkg)
		}
	}
}

// nameOf returns the name of a function, with the type of its receiver, or of
// the first variable of a declaration.
func nameOf(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		return strings.Trim(types.ExprString(d.Recv.List[0].Type), "*") + "." + d.Name.Name
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				return v.Names[0].Name
			}
		}
	}
	return ""
}
