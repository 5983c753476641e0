//go:build !cgo

package ccompiler

const _ = terrarium_needs_a_C_compiler__install_gcc_or_clang_and_set_CGO_ENABLED_to_1
