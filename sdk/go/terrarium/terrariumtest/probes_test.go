package terrariumtest

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

// TestFakeAnswersAsTheHost proves that the fake host gives the answers in
// sdk/reference/probes.txt, which are those of the real one.
func TestFakeAnswersAsTheHost(t *testing.T) {
	text, err := os.ReadFile("../../../reference/probes.txt")
	if err != nil {
		t.Fatal(err)
	}
	groups := strings.Split(strings.TrimSpace(string(text)), "\n\n")[1:]
	for _, group := range groups {
		title, lines, _ := strings.Cut(group, "\n")
		t.Run(title, func(t *testing.T) {
			f := New(terrarium.Creature{})
			f.Config = map[string]any{"text": "a", "list": []any{1, "b"}, "null": nil}
			f.Channels, f.Creatures = []string{"out", "common"}, []string{"frog"}
			if title == "turn tools" {
				f.Tools = func(name string, _ []byte) ([]byte, error) {
					if name != "group_status" {
						return nil, terrarium.NotFound
					}
					return []byte("{}"), nil
				}
			}
			f.asked = strings.HasPrefix(title, "request ")
			f.begin(nil)
			for want := range strings.SplitSeq(lines, "\n") {
				call, _, _ := strings.Cut(want, "= ")
				if got := call + "= " + answer(t, host{f}, strings.Fields(call)); got != want {
					t.Errorf("the fake host has  %s\nand the real one     %s", got, want)
				}
			}
		})
	}
}

// answer makes a call, and returns how many times it succeeded and the last result.
func answer(t *testing.T, h host, words []string) string {
	var numbers [4]int64
	for i := range numbers {
		n, err := strconv.ParseInt(words[3+i], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers[i] = n
	}
	made, status := int64(0), int32(0)
	payload := make([]byte, numbers[0])
	for ; made < numbers[3]; made++ {
		if status = probe(h, words[0], decoded(t, words[1], made), decoded(t, words[2], made), payload, numbers[1], numbers[2]); status < 0 {
			break
		}
	}
	return fmt.Sprint(made, " ", status)
}

func decoded(t *testing.T, word string, made int64) string {
	if word == "-" {
		return ""
	}
	if letter, times, ok := strings.Cut(word, "^"); ok {
		n, err := strconv.Atoi(times)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Repeat(letter, n)
	}
	text, err := url.PathUnescape(strings.ReplaceAll(word, "#", strconv.FormatInt(made, 10)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func probe(h host, op, name, text string, payload []byte, a, b int64) int32 {
	switch op {
	case "config":
		return h.Config(name, nil)
	case "send":
		channel := h.Channel(name)
		if channel < 0 {
			return channel
		}
		return h.Send(channel, payload, []byte(text))
	case "send_all":
		return h.Send(-1, payload, []byte(text))
	case "send_to":
		return h.SendTo(name, payload)
	case "request":
		return h.Request(name, payload, a, b)
	case "reply":
		return h.Reply(payload)
	case "output":
		return h.Output(payload)
	case "state_get":
		return h.StateGet(name, nil)
	case "state_set":
		return h.StateSet(name, payload)
	case "state_delete":
		return h.StateDelete(name)
	case "state_list":
		return h.StateList(name, nil)
	case "timer_set":
		return h.TimerSet(name, a, b, payload)
	case "timer_cancel":
		return h.TimerCancel(name)
	case "log":
		return h.Log(terrarium.Level(a), string(payload))
	case "tool":
		return min(h.Tool(name, []byte(text)), 0)
	}
	return -int32(terrarium.Unsupported)
}
