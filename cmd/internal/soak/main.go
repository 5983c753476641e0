package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// config is what the command line says.
type config struct {
	long, life, interval, pause time.Duration
	rounds, lives               int // instead of long and life, for the test
	pairs                       int
	retain                      int64
	seed                        uint64
	dir, out, profile           string
}

func main() {
	var c config
	flag.DurationVar(&c.long, "for", time.Hour, "how long to soak")
	flag.DurationVar(&c.life, "life", 5*time.Minute, "how long a terrarium runs until it is closed and opened again")
	flag.DurationVar(&c.interval, "interval", 5*time.Second, "how often the process is measured")
	flag.DurationVar(&c.pause, "pause", 100*time.Millisecond, "how long a lane waits between two bursts of messages")
	flag.IntVar(&c.pairs, "pairs", 4, "how many pairs of lanes there are")
	flag.Int64Var(&c.retain, "retain", 100_000, "how many events a session keeps")
	flag.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()), "what the random choices depend on")
	flag.StringVar(&c.dir, "dir", "", "the session directory, which must not exist; by default a temporary one")
	flag.StringVar(&c.out, "out", "bin/soak", "the directory for soak.csv and soak.svg")
	flag.StringVar(&c.profile, "profile", "", "a file for a profile of the processor's time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := c.soak(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		stop()
		os.Exit(1)
	}
}

// soak runs lives until the time is over, writes the table and the picture, and returns an
// error if anything went wrong or grew.
func (c config) soak(ctx context.Context, w io.Writer) (err error) {
	if c.dir == "" {
		temporary, err := os.MkdirTemp("", "soak-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
		c.dir = filepath.Join(temporary, "S")
	}
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return err
	}
	if c.profile != "" {
		f, err := os.Create(c.profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	s := &soak{pairs: c.pairs, pause: c.pause, seed: c.seed, books: newBooks(), cursor: journal.FromStart}
	s.options = terrarium.Options{Dir: c.dir, FS: files, Retain: sqlitestore.Retention{Events: c.retain}, Log: slog.New(slog.DiscardHandler)}
	s.sampler = &sampler{dir: c.dir, books: s.books}
	fmt.Fprintf(w, "soak with the seed %d in %s\n", c.seed, c.dir)
	began := time.Now()
	measuring, stop := context.WithCancel(ctx)
	var measurer sync.WaitGroup
	measurer.Go(func() { s.sampler.loop(measuring, c.interval) })
	err = c.inTurn(ctx, w, s, began)
	stop()
	measurer.Wait()
	return errors.Join(err, c.report(w, s, time.Since(began)))
}

// inTurn runs one life after the other.
func (c config) inTurn(ctx context.Context, w io.Writer, s *soak, began time.Time) error {
	open := 0 // descriptors after the first life, when the runtime has its own
	for n := 0; n < c.lives || c.lives == 0 && time.Since(began) < c.long; n++ {
		l := limit{rounds: c.rounds, until: began.Add(min(time.Duration(n+1)*c.life, c.long))}
		if err := s.live(ctx, n, l); err != nil {
			return fmt.Errorf("life %d: %w", n+1, err)
		}
		if n == 0 {
			open = descriptors()
		} else if now := descriptors(); now > open {
			s.books.problem("%d descriptors are open after closing, and %d were after the first life", now, open)
		}
		counts, problems := s.books.done()
		fmt.Fprintf(w, "%s: life %d: %d messages, %d merges, %d problems\n", time.Since(began).Round(time.Second), n+1, counts["messages"], counts["merges"], len(problems))
		if len(problems) > 0 {
			return nil // more lives would only change the directory, which shows what went wrong
		}
	}
	return nil
}

// report writes what was done and measured.
func (c config) report(w io.Writer, s *soak, took time.Duration) error {
	counts, problems := s.books.done()
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "%10d %s\n", counts[name], name)
	}
	samples := s.sampler.samples
	for i, curve := range series {
		if len(samples) > 0 {
			fmt.Fprintf(w, "%10.0f → %.0f %s %s\n", samples[0].values[i], samples[len(samples)-1].values[i], curve.unit, curve.name)
		}
	}
	title := fmt.Sprintf("Soak of %s with the seed %d", took.Round(time.Second), c.seed)
	err := errors.Join(
		write(filepath.Join(c.out, "soak.csv"), func(w io.Writer) error { return table(w, samples) }),
		write(filepath.Join(c.out, "soak.svg"), func(w io.Writer) error { return picture(w, title, samples) }),
	)
	problems = append(problems, growth(samples)...)
	for _, p := range problems {
		err = errors.Join(err, errors.New(p))
	}
	return err
}

func write(path string, f func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f(file), file.Close())
}
