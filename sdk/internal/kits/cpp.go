package kits

import "context"

var cppKit = Kit{
	Language: "C++",
	Dirs:     []string{"sdk/cpp", "sdk/c"},
	Tool:     clang,
	Build: func(ctx context.Context, root, out string) error {
		for _, name := range Creatures {
			err := clangBuild(ctx, root, out, name, "clang++-14", "-std=c++20", "-fno-exceptions", "-fno-rtti", "-Isdk/cpp", "-Isdk/c",
				"-c", "sdk/cpp/examples/"+name+".cpp")
			if err != nil {
				return err
			}
		}
		return nil
	},
	ShoutBytes: 2_100,
	Place:      `picky\.cpp:\d+`,
}
