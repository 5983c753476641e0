package kits

import "context"

var cppKit = Kit{
	Language: "C++",
	Dirs:     []string{"sdk/cpp", "sdk/c"},
	Tool:     clang,
	Build: func(ctx context.Context, root, out string) error {
		for _, name := range Creatures {
			if err := cppBuild(ctx, root, out, name); err != nil {
				return err
			}
		}
		return nil
	},
	Lines:      func(ctx context.Context, root, out string) error { return cppBuild(ctx, root, out, picky, lineTables) },
	ShoutBytes: 1_200,
	Place:      `picky\.cpp:\d+`,
}

func cppBuild(ctx context.Context, root, out, name string, options ...string) error {
	return clangBuild(ctx, root, out, name, append([]string{"clang++-14", "-std=c++20", "-fno-exceptions", "-fno-rtti", "-Isdk/cpp", "-Isdk/c",
		"-c", "sdk/cpp/examples/" + name + ".cpp"}, options...)...)
}
