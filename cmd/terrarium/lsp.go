package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/cmd/internal/lsp"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/recipes"
)

func lspCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor: errors, completion and more for recipes",
		Long: `lsp is a language server for recipes. An editor starts it and talks to it over
standard input and output, with the Language Server Protocol 3.17.
docs/how-to/edit-recipes.md explains how to set up editors.

The server shows the findings of validate for texts that are not saved yet. It
explains words, completes them, finds where things are declared and used, renames
them in all files of a recipe, shows an outline, and formats. It runs nothing,
writes no file, and reads no file outside the folder that the editor has opened.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := lsp.Serve(cmd.Context(), interruptible(func() (io.ReadCloser, error) { return s.in, nil }), s.out, lsp.Options{Validate: validateUnsaved, Builtins: plugins.Names(), Version: terrarium.Version})
			if errors.Is(err, lsp.ErrNoExit) {
				return &exit{code: exitFailed, err: err, shown: true} // as the protocol asks
			}
			return failWith(exitFailed, err)
		},
	}
}

// validateUnsaved reports what validate would report if all texts were saved.
func validateUnsaved(ctx context.Context, v lsp.Validation) recipes.Diagnostics {
	_, diags := loadRecipe(ctx, v.Path, terrarium.RecipeOptions{Env: os.Environ(), PolicyProcess: policyProcess(), Tests: true, Unsaved: v.Unsaved, Within: v.Root})
	return diags
}
