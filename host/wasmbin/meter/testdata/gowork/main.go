// Command gowork does what Go programs do: maps, strings, sorting, encoding,
// allocation.
package main

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"sort"
	"strings"
)

type record struct {
	ID    int                `json:"id"`
	Name  string             `json:"name"`
	Tags  []string           `json:"tags"`
	Score map[string]float64 `json:"score"`
}

//go:wasmexport run
func run(seed int32) int32 {
	counts := map[string]int{}
	sum := crc32.NewIEEE()
	for i := range 100 {
		r := record{ID: i, Name: fmt.Sprintf("record-%d-%x", i, seed), Tags: []string{"a", "b"}, Score: map[string]float64{"x": float64(i) / 3}}
		encoded, err := json.Marshal(r)
		if err != nil {
			return -1
		}
		var back record
		if err := json.Unmarshal(encoded, &back); err != nil {
			return -1
		}
		for _, word := range strings.FieldsFunc(strings.ToUpper(back.Name), func(r rune) bool { return r == '-' }) {
			counts[word] += back.ID
		}
		sum.Write(encoded)
	}
	words := make([]string, 0, len(counts))
	for w := range counts {
		words = append(words, w)
	}
	sort.Strings(words)
	numbers := make([]int, 5000)
	for i := range numbers {
		seed = seed*1664525 + 1013904223
		numbers[i] = int(seed)
	}
	sort.Ints(numbers)
	return int32(sum.Sum32()) ^ int32(len(words)) ^ int32(numbers[2500])
}

func main() {}
