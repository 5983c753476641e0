package policy

import (
	"strings"
	"syscall"
	"testing"

	"github.com/seed47132306/terrarium/internal/seeded"
)

// Each eater has much time, so that only the memory limit can stop it.
//
// The system counts the memory of the parent process for its child. So this test must run
// before tests whose scripts use much memory in this process; tests run in the order of
// their files. make test runs one eater in four.
func TestProcessesDieOfTooMuchMemory(t *testing.T) {
	seeded.Long(t)
	for i, script := range eaters {
		if !seeded.Part(i, 4) {
			continue
		}
		t.Run(script, func(t *testing.T) {
			s := apart(t, Policy{Name: "p0", Source: script, Timeout: patience})
			p := s.policies[0]
			defer s.children.endJudgement()
			ch, err := s.children.borrowChild()
			if err != nil {
				t.Fatal(err)
			}
			_, fault, err := ch.judge(p, &subject{send: event("x")})
			ch.kill()
			usage, ok := ch.command.ProcessState.SysUsage().(*syscall.Rusage)
			if !ok {
				t.Fatal("the system does not tell what the process has used")
			}
			const most = (DefaultMemory*4 + 128<<20) >> 10 // with garbage and the program itself, in KiB
			if usage.Maxrss > most {
				t.Errorf("it has used %d KiB, more than %d", usage.Maxrss, most)
			}
			switch {
			case err == nil:
				t.Errorf("it ended with %v", fault)
			case !strings.Contains(ch.epitaph(err), "memory"):
				t.Errorf("it ended so: %s", ch.epitaph(err))
			}
		})
	}
}
