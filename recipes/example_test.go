package recipes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed47132306/terrarium/recipes"
)

// load writes a recipe to a new folder, changes the working directory to it, and loads
// the recipe.
func load(source string) (*recipes.Recipe, recipes.Diagnostics, error) {
	dir, err := os.MkdirTemp("", "recipe")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "team.hcl"), []byte(source), 0o644); err != nil {
		return nil, nil, err
	}
	before, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	if err := os.Chdir(dir); err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.Chdir(before) }()
	r, diags := recipes.Load(context.Background(), "team.hcl", recipes.Options{Vars: map[string]string{"workers": "2"}})
	return r, diags, nil
}

func ExampleLoad() {
	r, diags, err := load(`
variable "workers" { type = number }

channel "lines" {}

creature "reader" {
  module = "builtin:relay"
  send   = [channel.lines]
}

creature "worker" {
  for_each = toset([for n in range(var.workers) : tostring(n)])
  module   = "builtin:tally"
  listen   = { work = channel.lines }
}
`)
	if err != nil || diags.HasErrors() {
		fmt.Println(err, diags)
		return
	}
	for _, c := range r.Deployment().Creatures {
		fmt.Println(c.Address, c.Name, c.Listen, c.Send)
	}
	// Output:
	// creature.reader reader [] [{channel.lines }]
	// creature.worker["0"] worker.0 [{channel.lines work}] []
	// creature.worker["1"] worker.1 [{channel.lines work}] []
}

func ExampleWriteText() {
	_, diags, err := load(`variable "workers" { type = number }
channel "lines" {}
creature "reader" {
  module = "builtin:relay"
  send   = ["lines"]
  limits { memory = "lots" }
}
`)
	if err == nil {
		err = recipes.WriteText(os.Stdout, diags, 80, false)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// Error: Channel expected, found a text
	//   team.hcl:5:13, in creature "reader"
	//   5 |   send   = ["lines"]
	//     |             ^^^^^^^
	//   References are written without quotes, so that they can be checked; this is
	//   the text "lines".
	//   = Write channel.lines without quotes.
	//
	// Error: Not a size
	//   team.hcl:6:21, in creature "reader"
	//   6 |   limits { memory = "lots" }
	//     |                     ^^^^^^
	//   Memory must be a number of bytes; this is "lots".
	//   = Write a size such as "16MiB", "64KiB" or 4096.
}
