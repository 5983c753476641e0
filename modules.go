package terrarium

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/host/translation"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/recipes"
)

// Module is a module as a [ModuleResolver] returns it.
type Module struct {
	Wasm []byte
	// SHA256 is the hash that the bytes must have, in hexadecimal. Empty means any.
	SHA256 string
}

// ModuleResolver returns the module with a name, which may be any text. It may be called
// from any goroutine, and should return an error that wraps [fs.ErrNotExist] for a name
// that it does not know. At most [abi.MaxModuleBytes] are accepted.
//
// An engine asks again after a restart, and then expects the same module. With another
// one, creatures continue as after an edit of their recipe.
type ModuleResolver func(ctx context.Context, name string) (Module, error)

// resolve returns the checked bytes of a module.
func (r ModuleResolver) resolve(ctx context.Context, scheme, name string) ([]byte, error) {
	ref := scheme + ":" + name
	m, err := r.call(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case len(m.Wasm) == 0:
		return nil, fmt.Errorf("%w: the program returned no bytes for %s", fs.ErrNotExist, ref)
	case len(m.Wasm) > abi.MaxModuleBytes:
		return nil, &abi.Error{
			Code: abi.TooLarge, Message: fmt.Sprintf("it has %d bytes; at most %d are allowed", len(m.Wasm), int64(abi.MaxModuleBytes)),
			IDs: map[string]string{"module": ref},
		}
	}
	if sum := sha256.Sum256(m.Wasm); m.SHA256 != "" && !strings.EqualFold(m.SHA256, hex.EncodeToString(sum[:])) {
		return nil, &abi.Error{
			Code: abi.Conflict, Message: fmt.Sprintf("its bytes have the hash %x, and %s is expected", sum, clipped(m.SHA256)),
			Remedy: "build the program again with the right module, or correct the hash", IDs: map[string]string{"module": ref},
		}
	}
	return m.Wasm, nil
}

// call calls the resolver, which is code of the program and may panic or be nil.
func (r ModuleResolver) call(ctx context.Context, name string) (m Module, err error) {
	defer func() {
		if v := recover(); v != nil {
			m, err = Module{}, &abi.Error{
				Code: abi.Internal, Message: "the program's function for modules panicked: " + clipped(fmt.Sprint(v)),
				Remedy: "correct the function in Modules",
			}
		}
	}()
	return r(ctx, name)
}

// clipped bounds a text for a message.
func clipped(text string) string {
	if len(text) > 2*sha256.Size {
		return text[:2*sha256.Size] + "…"
	}
	return text
}

// scheme matches the names that Options.Modules may have. They have at least two letters, so
// that none can be mistaken for the drive of a path.
var scheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]{1,31}$`)

func checkSchemes(modules map[string]ModuleResolver) error {
	for name, r := range modules {
		if !scheme.MatchString(name) || name+":" == BuiltinPrefix || name == "fs" || r == nil {
			return &abi.Error{
				Code: abi.InvalidArgument, Op: "new", Message: fmt.Sprintf("Options.Modules cannot have %q", name),
				Remedy: "use a lower-case name of 2 to 32 letters, digits, +, . and -, other than builtin and fs, and a function",
			}
		}
	}
	return nil
}

// sources converts resolvers to those of package recipes.
func (o RecipeOptions) sources() map[string]recipes.ModuleSource {
	out := make(map[string]recipes.ModuleSource, len(o.Modules))
	for scheme, r := range o.Modules {
		out[scheme] = func(ctx context.Context, name string) ([]byte, error) { return r.resolve(ctx, scheme, name) }
	}
	return out
}

// builtins returns the creatures that ship with the library, for recipes.
type builtins struct{}

func (builtins) Names() []string                  { return plugins.Names() }
func (builtins) Wasm(name string) ([]byte, error) { return plugins.Get(name) }

// BuiltinPrefix is the prefix of modules that ship with the library.
const BuiltinPrefix = "builtin:"

// LoadModule reads a module: a file or, with the prefix builtin:, a module that ships with
// the library.
func LoadModule(ctx context.Context, name string) ([]byte, error) {
	return RecipeOptions{}.LoadModule(ctx, name)
}

// LoadModule is like the function [LoadModule], and also reads paths in FS and names in
// Modules.
func (o RecipeOptions) LoadModule(ctx context.Context, name string) ([]byte, error) {
	if short, ok := strings.CutPrefix(name, BuiltinPrefix); ok {
		return plugins.Get(short)
	}
	var b []byte
	var err error
	scheme, own, _ := strings.Cut(name, ":")
	if r := o.Modules[scheme]; r != nil {
		b, err = r.resolve(ctx, scheme, own)
	} else {
		b, err = recipes.ReadModule(o.FS, name)
	}
	if err == nil {
		return b, nil
	}
	if full := abi.TooManyFiles(err); full != nil {
		return nil, full.With("path", name)
	}
	var refused *abi.Error
	if errors.As(err, &refused) {
		return nil, refused.With("path", name)
	}
	remedy := "name a file, or a module that ships with terrarium: " + BuiltinPrefix + strings.Join(plugins.Names(), ", "+BuiltinPrefix)
	return nil, &abi.Error{
		Code: abi.NotFound, Message: "the module cannot be read", Remedy: remedy,
		IDs: map[string]string{"path": name}, Err: err,
	}
}

// ExamineModule describes a module without compiling it, and finds all reasons why it
// cannot be a creature. The engine that it names is the one that would run the module
// in a program with these translations. The error is about ctx or the machine, not
// about the module.
func ExamineModule(ctx context.Context, wasm []byte, translations ...translation.Code) (x *host.Examination, err error) {
	h, err := host.New(ctx, host.Options{Translations: translations})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close(ctx)) }()
	return h.Examine(ctx, wasm)
}

// inspector inspects modules with a host that has no faster way than to compile them.
type inspector struct{ abi.Host }

// inspectorOf returns what recipes use to inspect modules.
func inspectorOf(h abi.Host) recipes.Inspector {
	if i, ok := h.(recipes.Inspector); ok {
		return i
	}
	return inspector{h}
}

// Inspect implements [recipes.Inspector].
func (i inspector) Inspect(ctx context.Context, wasm []byte) (*abi.ModuleInfo, error) {
	m, err := i.Compile(ctx, wasm)
	if err != nil {
		return nil, err
	}
	info := *m.Info() // it may not outlive the module
	return &info, m.Close(ctx)
}
