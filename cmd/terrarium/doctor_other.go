//go:build !linux && !darwin && !freebsd

package main

func freeSpace(string) (bytes, inodes int64, ok bool) { return 0, 0, false }
