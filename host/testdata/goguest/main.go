// Command goguest is a creature in standard Go, for the tests of the host: it
// prints, sleeps, uses goroutines and the heap, and sends a result computed
// from its payload.
package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"
)

//go:wasmimport terrarium_v1 read
func read(source, offset int32, ptr unsafe.Pointer, capacity int32) int32

//go:wasmimport terrarium_v1 send
func send(channel int32, ptr unsafe.Pointer, length int32, headers unsafe.Pointer, headersLen int32) int32

//go:wasmexport terrarium_abi_v1
func marker() {}

var turns int

//go:wasmexport creature_handle
func handle(kind, size int32) int32 {
	turns++
	buf := make([]byte, size+1)
	payload := string(buf[:read(0, 0, unsafe.Pointer(&buf[0]), size)])
	switch {
	case payload == "panic":
		panic("as asked")
	case payload == "exit":
		os.Exit(4)
	case payload == "sleep":
		start := time.Now()
		time.Sleep(time.Hour)
		payload = time.Since(start).Round(time.Minute).String()
	case payload == "wait":
		var wg sync.WaitGroup
		out := make(chan string, 3)
		for n := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(n+1) * time.Second)
				out <- fmt.Sprint(n)
			})
		}
		wg.Wait()
		payload = <-out + <-out + <-out
	case payload == "world":
		var b [4]byte
		rand.Read(b[:])
		_, err := os.ReadFile("/etc/passwd")
		payload = fmt.Sprintf("%s %q %d %v %s", b, os.Args, len(os.Environ()), err != nil, time.Now().UTC().Format(time.RFC3339Nano))
	case strings.HasPrefix(payload, "print"):
		fmt.Println("one\ntwo")
		fmt.Print("three ")
		fmt.Println("words")
		fmt.Fprintln(os.Stderr, "careful")
		fmt.Print("no newline")
	}
	text := []byte(fmt.Sprintf("%d %s", turns, payload))
	send(-1, unsafe.Pointer(&text[0]), int32(len(text)), nil, 0)
	return 0
}

func main() {}
