package topology

import "strconv"

// free returns name, or the first of name~2, name~3, … that is not taken.
func free(name string, taken func(string) bool) string {
	for n, candidate := 2, name; ; n++ {
		if !taken(candidate) {
			return candidate
		}
		candidate = name + "~" + strconv.Itoa(n)
	}
}

// freeChannelName finds a channel name that none of the graphs uses.
func freeChannelName(name string, graphs ...*graph) string {
	return free(name, func(candidate string) bool {
		for _, g := range graphs {
			if g.channelNames[candidate] != nil {
				return true
			}
		}
		return false
	})
}

func freeCreatureName(name string, graphs ...*graph) string {
	return free(name, func(candidate string) bool {
		for _, g := range graphs {
			if g.creatureNames[candidate] != nil {
				return true
			}
		}
		return false
	})
}
