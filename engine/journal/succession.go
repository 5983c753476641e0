package journal

// Succession maps graphs that have ended to the graphs that succeeded them.
type Succession map[GraphID]GraphID

// NewSuccession derives the successors of graphs from those of their sessions. The list
// has all sessions, oldest first.
func NewSuccession(list []SessionInfo) Succession {
	first := map[SessionID]GraphID{} // of the children of a session
	last := map[GraphID]SessionID{}
	for i := range list {
		for _, p := range list[i].Parents {
			if first[p] == "" {
				first[p] = list[i].Graph
			}
		}
		last[list[i].Graph] = list[i].Session
	}
	s := Succession{}
	for id, session := range last {
		if into := first[session]; into != "" {
			s[id] = into
		}
	}
	return s
}

// Related reports whether two ids belong to one graph, or to a graph and its successor.
func (s Succession) Related(a, b GraphID) bool { return a == b || s.became(a, b) || s.became(b, a) }

func (s Succession) became(old, id GraphID) bool {
	for next := s[old]; next != ""; next = s[next] {
		if next == id {
			return true
		}
	}
	return false
}
