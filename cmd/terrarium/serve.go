package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
	"github.com/spf13/cobra"
)

// serveFlags holds the flags of the serve command.
type serveFlags struct {
	engineFlags
	recipeFlags
	listen    string
	tokenFile string
	hosts     []string
}

func serveCommand(s streams) *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve [RECIPE]...",
		Short: "Run recipes as a service, with an HTTP interface and a page",
		Long: `serve applies recipes, or resumes those of the session directory, and offers the
operations of docs/reference/operations.md over HTTP until it is interrupted:

  POST /api/v1/OPERATION   arguments and results as JSON objects
  GET  /api/v1/events      events as server-sent events
  GET  /                   a page for a browser

serve prints a link that logs a browser in, once. Other callers send the token in the
token file as Authorization: Bearer TOKEN.`,
		Example: `  terrarium serve examples/quickstart --session S
  terrarium serve --session S --listen 127.0.0.1:8000`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.serve(cmd, s, args) },
	}
	f.engineFlags.add(cmd)
	f.recipeFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.listen, "listen", "127.0.0.1:7480", "`ADDRESS` to listen on; port 0 chooses a free one")
	fs.StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token, made if it does not exist (default SESSION.token; without --session, only the link logs in)")
	fs.StringArrayVar(&f.hosts, "host", nil, "also answer to requests for the host `NAME`; may be repeated")
	return cmd
}

func (f *serveFlags) serve(cmd *cobra.Command, s streams, paths []string) (err error) {
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	deployments, err := f.deployments(ctx, s, paths)
	if err != nil {
		return err
	}
	token, forget, err := f.token()
	if err != nil {
		return err
	}
	defer forget()
	listener, err := f.bind(ctx)
	if err != nil {
		return err
	}
	defer listener.Close()
	t, err := f.open(ctx, cmd, s)
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	defer func() {
		if cerr := shut(ctx, t); cerr != nil {
			err = besides(err, cerr)
		}
	}()
	var ready atomic.Bool
	h := serve.NewHandler(t, serve.Options{
		Tokens: []serve.Token{{Secret: token, Scope: operations.Admin}}, Hosts: f.hosts, Ready: ready.Load,
		Log: verbosity(s.err, f.verbose),
	})
	served := make(chan error, 1)
	serving, end := context.WithCancel(ctx)
	go func() { served <- serve.Serve(serving, listener, h, nil) }()
	defer func() {
		end()
		if serr := <-served; serr != nil && err == nil {
			err = failWith(exitFailed, serr)
		}
	}()
	if err := f.begin(ctx, s, t, deployments); err != nil {
		return unlessInterrupted(ctx, applyExit(ctx, err))
	}
	ready.Store(true)
	fmt.Fprintf(s.err, "Serving on http://%s. To log a browser in, once: http://%s/login?code=%s\n", listener.Addr(), listener.Addr(), h.LoginCode(operations.Admin))
	select {
	case serr := <-served:
		served <- nil
		return failWith(exitFailed, serr)
	case <-ctx.Done():
		return interrupted(ctx)
	}
}

// deployments loads the recipes.
func (f *serveFlags) deployments(ctx context.Context, s streams, paths []string) (out []*deploy.Deployment, err error) {
	for _, path := range paths {
		r, err := f.load(ctx, s, path)
		if err != nil {
			return nil, err
		}
		out = append(out, r.Deployment())
	}
	return out, nil
}

// begin applies the recipes, or resumes those of the session directory.
func (f *serveFlags) begin(ctx context.Context, s streams, t *terrarium.Terrarium, deployments []*deploy.Deployment) error {
	if len(deployments) > 0 {
		_, err := t.ApplyAll(ctx, deployments...)
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	resumed, err := t.Resume(ctx, terrarium.ResumeOptions{RecipeOptions: o})
	if err != nil {
		return err
	}
	for _, p := range resumed.Problems {
		showError(s.err, p)
	}
	return nil
}

// bind listens on the address.
func (f *serveFlags) bind(ctx context.Context) (net.Listener, error) {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, usage("--listen %s: write it as ADDRESS:PORT, such as 127.0.0.1:7480", f.listen)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, usage("--listen %s: use a loopback address, such as 127.0.0.1:7480", f.listen)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return nil, failWith(exitUsage, &abi.Error{Code: abi.Unavailable, Message: "cannot listen on " + f.listen, Remedy: "end the process that uses the port, or choose another one with --listen; port 0 chooses a free one", Err: err})
	}
	return listener, nil
}

// token reads the token, or makes it. forget removes one that is not kept.
func (f *serveFlags) token() (token string, forget func(), err error) {
	forget = func() {}
	path := f.tokenFile
	if path == "" && f.session == "" {
		return rand.Text(), forget, nil
	}
	if path == "" {
		path = filepath.Clean(f.session) + ".token"
	}
	token, err = readToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		token, err = makeToken(path)
	}
	return token, forget, err
}

const private = 0o600

func makeToken(path string) (string, error) {
	token := rand.Text()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
	if err != nil {
		return "", usage("--token-file %s: %w", path, err)
	}
	_, err = fmt.Fprintln(file, token)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", failWith(exitFailed, errors.Join(err, os.Remove(path)))
	}
	return token, nil
}

// readToken reads a token from a file that only its owner can read.
func readToken(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	switch {
	case !info.Mode().IsRegular():
		return "", usage("%s is not a plain file; name another one with --token-file", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", usage("other users can use the token in %s: run chmod 600 on it, and replace the token if it may have been read", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", usage("--token-file %s: %w", path, err)
	}
	token := strings.TrimSpace(string(text))
	const fewest = 20
	if len(token) < fewest {
		return "", usage("%s has no token of at least %d characters; remove the file, and the next start makes another one", path, fewest)
	}
	return token, nil
}
