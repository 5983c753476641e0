package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
	"github.com/spf13/cobra"
)

// serveFlags holds the flags of the serve command.
type serveFlags struct {
	engineFlags
	recipeFlags
	listen     string
	tokenFile  string
	hosts      []string
	tlsCert    string
	tlsKey     string
	tlsClients string
	tlsScope   string
	noLink     bool
	inputs     []string
	follow     bool
	logFormat  string
	logLevel   string
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

serve prints a link that logs a browser in, once. Other callers send a token of the
token file as Authorization: Bearer TOKEN. Each line of that file has a token, its
scope (read, operate or admin; admin if left out) and the graphs that it is for.

On SIGHUP, serve reads the recipes and the token file again. If the recipes or the token
file cannot be used, serve keeps the former ones. SIGTERM ends serve with the exit code 0.
On systemd, use Type=notify-reload.`,
		Example: `  terrarium serve examples/quickstart --session S
  terrarium serve --session S --listen 127.0.0.1:8000`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.serve(cmd, s, args) },
	}
	f.engineFlags.add(cmd)
	f.recipeFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.listen, "listen", "127.0.0.1:7480", "`ADDRESS` to listen on; port 0 chooses a free one")
	fs.StringVar(&f.tokenFile, "token-file", "", "`FILE` with the tokens, created if it does not exist (default SESSION.token; without --session, only the link logs in)")
	fs.StringArrayVar(&f.hosts, "host", nil, "also answer to requests for the host `NAME`; may be repeated")
	fs.StringArrayVar(&f.inputs, "input", nil, "send each line of a file to a channel, as `CHANNEL=FILE`; may be repeated")
	fs.BoolVar(&f.follow, "follow", false, "at the end of an input file, wait for more lines, even across log rotation")
	fs.StringVar(&f.tlsCert, "tls-cert", "", "`FILE` with the TLS certificate, which is required for addresses other than loopback")
	fs.StringVar(&f.tlsKey, "tls-key", "", "`FILE` with the key of the certificate; only its owner may have permission to read it")
	fs.StringVar(&f.tlsClients, "tls-client-ca", "", "`FILE` with a certificate; clients with a certificate from it need no token")
	fs.StringVar(&f.tlsScope, "tls-client-scope", "operate", "what these clients may do: read, operate or admin")
	fs.BoolVar(&f.noLink, "no-login-link", false, "do not print a link that logs a browser in")
	fs.StringVar(&f.logFormat, "log-format", "json", "format of the log on standard error: json or text")
	fs.StringVar(&f.logLevel, "log-level", "info", "lowest level that is logged: debug, info, warn or error")
	return cmd
}

// logger returns the log of the service.
func (f *serveFlags) logger(s streams) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, usage("--log-level %s: use debug, info, warn or error", f.logLevel)
	}
	if f.verbose {
		level = slog.LevelDebug
	}
	o := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "json":
		return slog.New(slog.NewJSONHandler(s.err, o)), nil
	case "text":
		return slog.New(slog.NewTextHandler(s.err, o)), nil
	}
	return nil, usage("--log-format %s: use json or text", f.logFormat)
}

// service is a running serve command.
type service struct {
	f        *serveFlags
	s        streams
	log      *slog.Logger
	t        *terrarium.Terrarium
	h        *serve.Handler
	listener net.Listener
	secure   *tls.Config
	source   recipeSource
	inputs   []*input
	reloads  <-chan os.Signal // SIGHUP
	ready    atomic.Bool
}

func (f *serveFlags) serve(cmd *cobra.Command, s streams, paths []string) (err error) {
	ctx, stop := untilSignals(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	reloads := make(chan os.Signal, 1)
	signal.Notify(reloads, syscall.SIGHUP) // from the start to the end: by default, it would end the process
	defer signal.Stop(reloads)
	if f.log, err = f.logger(s); err != nil {
		return err
	}
	x := &service{f: f, s: s, log: f.log, reloads: reloads}
	o := &f.web
	o.Hosts, o.Ready = f.hosts, x.ready.Load
	if x.secure, o.Certificates, err = f.security(); err != nil {
		return err
	}
	o.Secure = x.secure != nil
	if x.source, err = f.recipes(ctx, s, paths); err != nil {
		return err
	}
	if o.Tokens, err = f.tokens(); err != nil {
		return err
	}
	if x.inputs, err = openInputs(f.inputs, s, f.follow); err != nil {
		return err
	}
	defer closeInputs(x.inputs)
	if x.listener, err = f.bind(ctx); err != nil {
		return err
	}
	defer x.listener.Close()
	o.Address = strings.Replace(x.address(), "[::]", "localhost", 1) // the unspecified address is none that a browser can open
	if x.t, err = f.open(ctx, cmd, s); err != nil {
		return unlessInterrupted(ctx, err)
	}
	x.h = f.handler
	err = x.run(ctx)
	if cerr := f.shut(ctx, x.t); cerr != nil {
		err = besides(err, cerr)
	}
	return err
}

// run serves until the context ends.
func (x *service) run(ctx context.Context) error {
	work, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var others sync.WaitGroup
	x.t.Connectors().Webhooks() // so that applying a recipe waits for its webhooks
	others.Go(func() {
		if err := x.h.Serve(work, x.listener, x.secure); err != nil {
			fail(failWith(exitFailed, err))
		}
	})
	err := x.begin(work)
	if err == nil {
		x.ready.Store(true)
		defer tellWeakDisk(work, os.DirFS("/"), x.f.session, x.t, func(message, remedy string) { x.log.Warn(message, "remedy", remedy) })()
		x.announce()
		others.Go(func() { x.reloadUntil(work, x.reloads) })
		others.Go(func() { x.keepAlive(work) })
		others.Go(func() { x.feed(work, fail) })
		<-work.Done()
	}
	failure := context.Cause(work)
	x.notify("STOPPING=1")
	x.log.Info("the service is ending")
	fail(nil)
	others.Wait()
	return outcome(ctx, err, failure)
}

// outcome returns the error with which the service ends. SIGTERM is the usual way to end it.
func outcome(ctx context.Context, err, failure error) error {
	var signalled *interruption
	switch {
	case err != nil:
		return unlessInterrupted(ctx, applyExit(ctx, err))
	case ctx.Err() == nil:
		return failure
	case errors.As(context.Cause(ctx), &signalled) && signalled.signal == syscall.SIGTERM:
		return nil
	}
	return interrupted(ctx)
}

// begin applies the recipes.
func (x *service) begin(ctx context.Context) error {
	if plan, err := x.source.plan(ctx, x.t); err != nil {
		x.log.Warn("what becomes reachable outside is not known", "error", operations.NewErrorRecord(err))
	} else if plan != nil {
		x.logOutside(plan)
	}
	problems, err := x.source.begin(journal.Attribute(ctx, journal.Attribution{Via: "start"}), x.t)
	for _, p := range problems {
		x.log.Warn("a problem of the session directory", "error", operations.NewErrorRecord(p))
	}
	return err
}

// feed sends the lines of the inputs.
func (x *service) feed(ctx context.Context, fail context.CancelCauseFunc) {
	s := streams{x.s.in, x.s.out, slog.NewLogLogger(x.log.Handler(), slog.LevelWarn).Writer()}
	r := &running{f: &runFlags{engineFlags: x.f.engineFlags, quiet: true}, s: s, t: x.t, inputs: x.inputs}
	r.report = newReporter(r)
	r.feed(ctx, func(err error) {
		if err != nil {
			fail(failWith(exitFailed, err))
		}
	})
}

// address is where the service listens.
func (x *service) address() string {
	scheme := "http://"
	if x.secure != nil {
		scheme = "https://"
	}
	return scheme + x.listener.Addr().String()
}

// announce says where the service is.
func (x *service) announce() {
	address := x.address()
	x.log.Info("the service is ready", "address", address)
	x.notify("READY=1", "STATUS=Serving on "+address)
	if !x.f.noLink {
		fmt.Fprintf(x.s.out, "To open the page, once and within ten minutes: %s\n", x.h.LoginLink(operations.Rights{Scope: operations.Admin}))
	}
}
