package terrarium

import (
	"bytes"
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/plainly"
	"github.com/seed47132306/terrarium/recipes"
)

// SavedPlan is a plan that [Terrarium.ApplyPlan] applies later, unless something that
// it depends on has changed. It contains the values of variables. Of the sensitive
// values, it contains only one hash, which is slow to compute.
//
// A saved plan is not trusted. It is not a list of instructions: applying it loads the
// recipe again, makes the plan again, and refuses any difference. Use [ReadPlan] to read
// one.
type SavedPlan struct {
	Format     string      `json:"format"`  // always "terrarium plan"
	Version    int         `json:"version"` // version of this format
	Recipe     string      `json:"recipe"`  // absolute path of the recipe
	Deployment string      `json:"deployment"`
	Dir        string      `json:"dir,omitempty"` // absolute path of the session directory, if the plan was made with one
	Sessions   []SessionID `json:"sessions"`      // live sessions of the directory
	// SHA-256 hashes of the files that were read, in hexadecimal, by name
	Files map[string]string `json:"files"`
	// SHA-256 hashes of the modules, by path
	Modules map[string]string `json:"modules"`
	// values that were given to variables, without sensitive ones
	Variables map[string]json.RawMessage `json:"variables"`
	Sensitive *SensitiveHash             `json:"sensitive,omitempty"` // a hash of the sensitive values
	Changes   PlannedChanges             `json:"changes"`             // what would change
}

// SensitiveHash is a hash of all sensitive values of a recipe.
type SensitiveHash struct {
	Names []string `json:"names"` // names of the sensitive variables, sorted
	Salt  []byte   `json:"salt"`  // random bytes, in base64
	Hash  []byte   `json:"hash"`  // hash of salt and values, in base64
}

// PlannedChanges is the part of a plan that decides whether a saved plan is stale. It
// does not count messages that remain.
type PlannedChanges struct {
	// policies, predicates, species and other declarations that are neither creatures nor channels
	Declared  []diff.DeclarationPlan `json:"declared"`
	Creatures []diff.CreaturePlan    `json:"creatures"` // changes of creatures
	Channels  []diff.ChannelPlan     `json:"channels"`  // changes of channels
	Graphs    []diff.GraphPlan       `json:"graphs"`    // graphs that merge, split, begin or end
}

const (
	savedFormat  = "terrarium plan"
	savedVersion = 1
	// MaxSavedPlanBytes bounds the size of a saved plan.
	MaxSavedPlanBytes = 64 << 20
	// sensitiveRounds makes guessing a sensitive value as slow as guessing a password:
	// each try takes some tenths of a second.
	sensitiveRounds = 600_000
	saltBytes       = 16
)

// NewSavedPlan returns the plan of applying a recipe in a form that can be kept. sessions
// are those of the directory at path dir; both are empty without a directory.
func NewSavedPlan(r *recipes.Recipe, plan *diff.Plan, sessions []journal.SessionInfo, dir string) (*SavedPlan, error) {
	d := r.Deployment()
	p := &SavedPlan{
		Format: savedFormat, Version: savedVersion, Recipe: d.Source.Path, Deployment: d.Name, Sessions: []SessionID{},
		Files: hashesOf(d.Source.Files), Modules: modulesOf(r), Variables: d.Source.Variables, Changes: plannedIn(plan.About(d.Name)),
	}
	for i := range sessions {
		if sessions[i].Live {
			p.Sessions = append(p.Sessions, sessions[i].Session)
		}
	}
	if dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, &abi.Error{Code: abi.InvalidArgument, Op: "plan", Message: "the session directory has no absolute path", Err: err}
		}
		p.Dir = abs
	}
	if len(r.Secrets()) == 0 {
		return p, nil
	}
	p.Sensitive = &SensitiveHash{Names: slices.Sorted(maps.Keys(r.Secrets())), Salt: make([]byte, saltBytes)}
	_, _ = rand.Read(p.Sensitive.Salt) // never fails
	var err error
	p.Sensitive.Hash, err = hashSecrets(r.Secrets(), p.Sensitive.Salt)
	return p, err
}

func hashesOf(texts map[string]string) map[string]string {
	out := make(map[string]string, len(texts))
	for name, text := range texts {
		out[name] = hashOf([]byte(text))
	}
	return out
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// modulesOf returns the hashes of a recipe's modules.
func modulesOf(r *recipes.Recipe) map[string]string {
	out := map[string]string{}
	d := r.Deployment()
	add := func(spec *CreatureSpec) {
		if out[spec.Module] == "" {
			out[spec.Module] = hashOf(spec.Wasm)
		}
	}
	for i := range d.Creatures {
		add(&d.Creatures[i])
	}
	for i := range d.Species {
		add(&d.Species[i].Spec)
	}
	return out
}

func hashSecrets(secrets map[string][]byte, salt []byte) ([]byte, error) {
	text, err := json.Marshal(secrets) // sorted by name, and unambiguous
	if err != nil {
		return nil, err
	}
	return pbkdf2.Key(sha256.New, string(text), salt, sensitiveRounds, sha256.Size)
}

// plannedIn returns the changes of a plan without the counts that change while creatures
// run. What the plan discards stays counted.
func plannedIn(plan *diff.Plan) PlannedChanges {
	out := PlannedChanges{Declared: plan.Declared, Creatures: slices.Clone(plan.Creatures), Channels: slices.Clone(plan.Channels), Graphs: plan.Graphs}
	for i := range out.Creatures {
		if c := &out.Creatures[i]; c.Action != diff.PlanRemove {
			c.Waiting = diff.Waiting{}
		}
	}
	for i := range out.Channels {
		if c := &out.Channels[i]; c.Action != diff.PlanRemove {
			c.Messages = 0
		}
	}
	return out
}

// Write writes the plan in the form that [ReadPlan] reads.
func (p *SavedPlan) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(p)
}

// ReadPlan reads and checks a saved plan. The error has the code invalid_argument if it
// is not a saved plan, unsupported if another version has written it, and too_large
// above
// [MaxSavedPlanBytes].
func ReadPlan(r io.Reader) (*SavedPlan, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSavedPlanBytes+1))
	switch {
	case err != nil:
		return nil, &abi.Error{Code: abi.Unavailable, Op: "apply", Message: "the saved plan cannot be read", Err: err}
	case len(data) > MaxSavedPlanBytes:
		return nil, &abi.Error{Code: abi.TooLarge, Op: "apply", Message: fmt.Sprintf("the saved plan is larger than %d MiB", MaxSavedPlanBytes>>20), Remedy: planAgain}
	}
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) && bytes.Contains(data[:min(len(data), 64)], []byte(savedFormat)) {
		return nil, notAPlan("the saved plan is damaged or cut short")
	} else if err != nil || head.Format != savedFormat {
		return nil, notAPlan("this is not a saved plan")
	}
	if head.Version != savedVersion {
		return nil, &abi.Error{
			Code: abi.Unsupported, Op: "apply", Message: fmt.Sprintf("the saved plan has version %d of its format, and this program reads version %d", head.Version, savedVersion),
			Remedy: "plan again with this program, or apply it with the program that has saved it",
		}
	}
	p := &SavedPlan{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		return nil, notAPlan("the saved plan is not valid: " + plainly.JSON(data, err).Error())
	}
	if err := p.check(); err != nil {
		return nil, notAPlan("the saved plan is not valid: " + err.Error())
	}
	return p, nil
}

const planAgain = "make the plan again"

func notAPlan(message string) error {
	return &abi.Error{Code: abi.InvalidArgument, Op: "apply", Message: message, Remedy: "use a file that terrarium plan RECIPE --out FILE has written"}
}

// check checks the parts that are used before the plan is made again. All others are only
// compared.
func (p *SavedPlan) check() error {
	switch {
	case !recipes.IsAbs(p.Recipe):
		return errors.New("recipe is not an absolute path")
	case p.Dir != "" && !filepath.IsAbs(p.Dir):
		return errors.New("dir is not an absolute path")
	case strings.ContainsRune(p.Recipe+p.Dir, 0):
		return errors.New("a path has a zero byte")
	case p.Sensitive != nil && len(p.Sensitive.Salt) != saltBytes:
		return fmt.Errorf("a salt has %d bytes", saltBytes)
	}
	return nil
}

// IsFor reports whether the plan is for the recipe at a path.
func (p *SavedPlan) IsFor(path string) bool {
	abs, err := recipes.AbsPath(path)
	return err == nil && abs == p.Recipe
}

// Load loads the recipe of the plan as it is now, without an engine; see [LoadRecipe].
func (p *SavedPlan) Load(ctx context.Context, o RecipeOptions) (*recipes.Recipe, Diagnostics) {
	var r *recipes.Recipe
	diags := inspecting(ctx, func(h *host.Host) (diags Diagnostics) {
		r, diags = p.load(ctx, o.loading(h))
		return diags
	})
	return r, diags
}

// load loads the recipe with the values that its variables had.
func (p *SavedPlan) load(ctx context.Context, ro recipes.Options) (*recipes.Recipe, Diagnostics) {
	ro.Given = p.Variables
	return recipes.Load(ctx, p.Recipe, ro)
}

// ApplyPlan applies a saved plan exactly, or does nothing. If something that the plan
// depends on has changed, the error has the code conflict and names the changes. Messages
// that were handled since do not matter, unless the plan would now discard other messages.
// o can set the values of sensitive variables, which the plan does not contain.
//
// The caller must not change the graphs at the same time: a change by another caller
// between the comparison and the application is not noticed.
func (t *Terrarium) ApplyPlan(ctx context.Context, p *SavedPlan, o RecipeOptions) (*Applied, error) {
	r, diags := p.load(ctx, t.loading(o))
	if err := diags.Err(); err != nil {
		return nil, err
	}
	return t.ApplyPlanned(ctx, p, r)
}

// ApplyPlanned is ApplyPlan with a recipe that [SavedPlan.Load] has loaded.
func (t *Terrarium) ApplyPlanned(ctx context.Context, p *SavedPlan, r *recipes.Recipe) (*Applied, error) {
	if err := p.CheckRecipe(r); err != nil {
		return nil, err
	}
	sessions, err := t.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.checkSessions(sessions); err != nil {
		return nil, err
	}
	d := r.Deployment()
	plan, err := t.Plan(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := p.checkChanges(plan); err != nil {
		return nil, err
	}
	return t.ApplyDeployment(ctx, d)
}
