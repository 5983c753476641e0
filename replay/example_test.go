package replay_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/seed47132306/terrarium"
)

// A recorded session is a regression test for a creature: the new module must do the same
// in every turn as the recorded one. This is the body of such a test.
func Example() {
	ctx := context.Background()
	module, err := os.ReadFile("../plugins/tally/tally.wasm") // what was just built
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := recordCensus(ctx)
	defer os.RemoveAll(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := terrarium.Replay(ctx, dir, terrarium.ReplayOptions{
		Creatures: []string{"census"}, Module: module,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range report.Differences {
		fmt.Printf("turn %s differs:\n", d.Turn)
		for _, change := range d.Diff() {
			fmt.Printf("%c %s\n", change.Sign, change.Effect)
		}
	}
	fmt.Println("as recorded:", report.Same())
	// Output:
	// as recorded: true
}

// recordCensus makes a session that stands for one from production.
func recordCensus(ctx context.Context) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "census-"); err != nil {
		return dir, err
	}
	t, err := terrarium.New(ctx, terrarium.Options{Dir: dir})
	if err != nil {
		return dir, err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	applied, err := t.Apply(ctx, "../examples/quickstart", terrarium.RecipeOptions{})
	if err != nil {
		return dir, err
	}
	for _, line := range []string{"07:02 frog", "07:41 newt", "08:03 frog"} {
		if _, err := t.Send(ctx, applied.Channels["channel.lines"], terrarium.Outgoing{Payload: []byte(line)}); err != nil {
			return dir, err
		}
	}
	return dir, t.WaitIdle(ctx)
}
