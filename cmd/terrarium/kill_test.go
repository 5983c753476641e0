package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// kills is how often TestKill kills; TERRARIUM_KILLS asks for more.
func kills(t *testing.T) int {
	text := os.Getenv("TERRARIUM_KILLS")
	if text == "" {
		return 6
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TERRARIUM_KILLS is %q, and not a number", text)
	}
	return n
}

// killsPerSession is how often one session is killed before its run is
// finished.
const killsPerSession = 3

// A run that is killed, again and again, and then finished leaves exactly the
// tallies of an undisturbed one, and prints every line at least once, in order.
func TestKill(t *testing.T) {
	const lines = 3000
	var text, want strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "k%d line %d\n", i%7, i)
	}
	for k := range 7 {
		n := lines / 7
		if k < lines%7 {
			n++
		}
		fmt.Fprintf(&want, `"count/k%d":"%d",`, k, n)
	}
	wantState := `{"state":{` + strings.TrimSuffix(want.String(), ",") + `}}`

	for round, left := 0, kills(t); left > 0; round++ {
		n := min(left, killsPerSession)
		left -= n
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "count.hcl", relayAndCount)
			write(t, dir, "lines.txt", text.String())
			random := rand.New(rand.NewPCG(uint64(round), 0))
			printed := []string{}
			for range n {
				printed = append(printed, killedRun(t, dir, random.IntN(lines/n))...)
			}
			last := once(t, dir, "", "run", "count.hcl", "--input", "lines=lines.txt", "--output", "seen", "--exit-when-idle", "--session", "S")
			printed = append(printed, strings.SplitAfter(last, "\n")...)
			checkPrinted(t, printed, text.String())
			for _, creature := range []string{"counts", "again"} {
				p := start(t, dir, "exec", "--session", "S")
				if got := string(p.ask(`{"op":"state","creature":"` + creature + `","prefix":"count/"}`)); got != wantState {
					t.Errorf("%s holds %s, want %s", creature, got, wantState)
				}
				p.in.Close()
				p.wait()
			}
		})
	}
}

// killedRun kills a run once it has printed some lines, and returns all that it
// printed.
func killedRun(t *testing.T, dir string, after int) []string {
	p := start(t, dir, "run", "count.hcl", "--input", "lines=lines.txt", "--output", "seen", "--exit-when-idle", "--session", "S")
	var printed []string
	killed := false
	for {
		if len(printed) >= after && !killed {
			killed = true
			if err := p.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		line, err := p.out.ReadString('\n')
		if err != nil {
			break // a line that was cut off is printed again
		}
		printed = append(printed, line)
	}
	p.cmd.Wait()
	return printed
}

// checkPrinted checks that the runs together printed every line, in order but
// for what a later run printed again.
func checkPrinted(t *testing.T, printed []string, text string) {
	t.Helper()
	place := map[string]int{}
	all := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	all[len(all)-1] += "\n"
	for i, line := range all {
		place[line] = i
	}
	next := 0
	for _, line := range printed {
		if line == "" {
			continue
		}
		i, known := place[line]
		if !known || i > next {
			t.Fatalf("printed %q where line %d was due", line, next)
		}
		next = i + 1
	}
	if next != len(all) {
		t.Errorf("only %d of %d lines were printed", next, len(all))
	}
}
